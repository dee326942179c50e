#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace medley {

/// A directory that appears whole or not at all: files are written into a hidden sibling, which
/// takes the final name only at `commit`. Destroyed without commit it leaves nothing behind, parent
/// folders that it had to make included.
///
/// An existing non-empty directory is refused unless `overwrite`, and even then when it holds
/// anything but the files of an earlier report: other people's files are never deleted.
/// Throws InputError for a refused target and std::runtime_error when the disk says no.
class OutputDirectory {
 public:
  OutputDirectory(std::string path, bool overwrite);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  /// Only the checks, before hours are spent on a run whose result could not be kept.
  static void check(const std::string& path, bool overwrite);

  std::string file(std::string_view name) const;  ///< where to write a file
  void commit();

 private:
  void discard() noexcept;
  std::string path_;
  std::string staging_;
  std::vector<std::string> made_parents_;  ///< outermost first
  bool overwrite_ = false;
  bool committed_ = false;
};

/// A file written through one buffer of bounded size, plain or gzip. Append to `buffer()` and call
/// `flush_if_full()` between rows. Throws std::runtime_error (message for the user) when the disk
/// says no; `close` reports what closing finds.
class FileSink {
 public:
  FileSink(const std::string& path, bool gzip);
  ~FileSink();
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  std::string& buffer() { return buffer_; }
  void flush_if_full() {
    if (buffer_.size() >= kBufferBytes) flush();
  }
  void close();

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
  void flush();
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::string buffer_;
};

}  // namespace medley
