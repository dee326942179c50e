#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace medley {

/// Reads a text file line by line, plain or gzip (told by its magic bytes, not its name).
/// Strips "\r\n" and "\n", skips a UTF-8 BOM, gives a last line without newline too.
/// Throws InputError with path and line: missing, a directory, truncated or corrupt gzip, a line
/// longer than `max_line` bytes.
class LineReader {
 public:
  explicit LineReader(const std::string& path, std::size_t max_line = std::size_t{1} << 20);
  ~LineReader();
  LineReader(LineReader&&) noexcept;
  /// The next line, valid until the following call; false at the end.
  bool next(std::string_view& line);
  std::int64_t line_number() const;  ///< 1-based number of the line last returned

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whole file as a string (gzip too). Throws InputError.
std::string read_file(const std::string& path, std::size_t max_bytes = std::size_t{256} << 20);
/// Writes gzip-compressed or plain bytes; no time stamp or name in the gzip header, so same in,
/// same out. Throws std::runtime_error (message for the user) when the disk says no.
void write_file(const std::string& path, std::string_view bytes);
void write_file_gzip(const std::string& path, std::string_view bytes);
/// 64-bit FNV-1a; pass the last result as `seed` to go on with more bytes.
std::uint64_t fnv1a(std::string_view bytes, std::uint64_t seed = 14695981039346656037ULL);
std::string hex64(std::uint64_t value);  ///< 16 lower-case hex digits

}  // namespace medley
