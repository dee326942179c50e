#include "sim/core/text_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sim/core/error.h"

namespace medley {

namespace {
constexpr std::size_t kChunk = std::size_t{1} << 18;
constexpr std::size_t kFirstStep = std::size_t{1} << 13;  // most files read whole are small
constexpr std::string_view kBom = "\xef\xbb\xbf";

struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

std::string os_reason() {
  return std::strerror(errno);
}

/// The bytes of a file, inflated when it starts like gzip (members may follow one another).
class ByteSource {
 public:
  explicit ByteSource(std::string path) : path_(std::move(path)), raw_(new unsigned char[kChunk]) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path_, ignored)) {
      throw InputError(path_, "", "is a directory, not a file");
    }
    file_.reset(std::fopen(path_.c_str(), "rb"));
    if (!file_) throw InputError(path_, "", "cannot read: " + os_reason());
    refill();
    if (left_ >= 2 && raw_[0] == 0x1f && raw_[1] == 0x8b) start_inflate();
  }
  ~ByteSource() {
    if (gzip_) inflateEnd(&z_);
  }
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// Fills up to `size` bytes; 0 only at the end.
  std::size_t read(char* out, std::size_t size) {
    if (gzip_) return read_gzip(out, size);
    if (left_ == 0) refill();
    const std::size_t n = std::min(size, left_);
    std::memcpy(out, raw_.get() + at_, n);
    at_ += n;
    left_ -= n;
    return n;
  }

 private:
  void refill() {
    at_ = 0;
    left_ = std::fread(raw_.get(), 1, kChunk, file_.get());
    if (left_ == 0 && std::ferror(file_.get())) {
      throw InputError(path_, "", "cannot read: " + os_reason());
    }
  }

  void start_inflate() {
    constexpr int kGzipWindow = 16 + MAX_WBITS;
    MEDLEY_CHECK(inflateInit2(&z_, kGzipWindow) == Z_OK, "zlib does not start");
    gzip_ = true;
  }

  std::size_t read_gzip(char* out, std::size_t size) {
    z_.next_out = reinterpret_cast<Bytef*>(out);
    z_.avail_out = static_cast<uInt>(std::min<std::size_t>(size, kChunk));
    const uInt wanted = z_.avail_out;
    while (z_.avail_out == wanted) {
      if (left_ == 0) refill();
      if (left_ == 0) {
        if (between_members_) break;
        throw InputError(path_, "", "truncated gzip data: the file ends too early");
      }
      if (between_members_ && raw_[at_] == 0) {  // tape padding
        ++at_, --left_;
        continue;
      }
      inflate_some();
    }
    return wanted - z_.avail_out;
  }

  void inflate_some() {
    z_.next_in = raw_.get() + at_;
    z_.avail_in = static_cast<uInt>(left_);
    const int status = inflate(&z_, Z_NO_FLUSH);
    at_ += left_ - z_.avail_in;
    left_ = z_.avail_in;
    between_members_ = status == Z_STREAM_END;
    if (status == Z_STREAM_END) {
      inflateReset(&z_);
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw InputError(path_, "",
                       fmt::format("corrupt gzip data: {}", z_.msg ? z_.msg : "bad stream"));
    }
  }

  std::string path_;
  File file_;
  std::unique_ptr<unsigned char[]> raw_;  ///< not cleared: most files are far smaller
  std::size_t at_ = 0;
  std::size_t left_ = 0;
  z_stream z_{};
  bool gzip_ = false;
  bool between_members_ = false;
};

std::string size_text(std::size_t bytes) {
  constexpr std::size_t kMebi = std::size_t{1} << 20;
  return bytes % kMebi == 0 ? fmt::format("{} MiB", bytes / kMebi) : fmt::format("{} bytes", bytes);
}
}  // namespace

struct LineReader::Impl {
  std::string path;
  std::size_t max_line;
  ByteSource source;
  std::string buffer;  // [at, buffer.size()) is not given out yet
  std::size_t at = 0;
  bool at_end = false;
  std::int64_t number = 0;

  Impl(const std::string& p, std::size_t max) : path(p), max_line(max), source(p) {
    while (buffer.size() < kBom.size() && !at_end) grow();
    if (std::string_view(buffer).starts_with(kBom)) at = kBom.size();
  }

  void grow() {
    buffer.erase(0, at);
    at = 0;
    const std::size_t old = buffer.size();
    buffer.resize(old + kChunk);
    const std::size_t n = source.read(buffer.data() + old, kChunk);
    buffer.resize(old + n);
    at_end = n == 0;
  }

  void check_length(std::size_t length) const {
    if (length <= max_line) return;
    throw InputError(path, fmt::format("line {}", number + 1),
                     fmt::format("is longer than {}", size_text(max_line)));
  }

  bool next(std::string_view& line) {
    std::size_t searched = at;
    while (true) {
      const std::size_t end = buffer.find('\n', searched);
      if (end != std::string::npos) {
        check_length(end - at);
        give(line, end);
        at = end + 1;
        return true;
      }
      check_length(buffer.size() - at);
      if (at_end) break;
      searched = buffer.size() - at;
      grow();
    }
    if (at == buffer.size()) return false;
    give(line, buffer.size());
    at = buffer.size();
    return true;
  }

  void give(std::string_view& line, std::size_t end) {
    line = std::string_view(buffer).substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
  }
};

LineReader::LineReader(const std::string& path, std::size_t max_line)
    : impl_(std::make_unique<Impl>(path, max_line)) {}
LineReader::~LineReader() = default;
LineReader::LineReader(LineReader&&) noexcept = default;
bool LineReader::next(std::string_view& line) {
  return impl_->next(line);
}
std::int64_t LineReader::line_number() const {
  return impl_->number;
}

std::string read_file(const std::string& path, std::size_t max_bytes) {
  ByteSource source(path);
  std::string text;
  for (std::size_t step = kFirstStep;; step = std::min(2 * step, kChunk)) {
    const std::size_t old = text.size();
    text.resize(old + step);
    const std::size_t n = source.read(text.data() + old, step);
    text.resize(old + n);
    if (n == 0) return text;
    if (text.size() > max_bytes) {
      throw InputError(path, "", fmt::format("is larger than {}", size_text(max_bytes)));
    }
  }
}

void write_file(const std::string& path, std::string_view bytes) {
  File file(std::fopen(path.c_str(), "wb"));
  const auto fail = [&] {
    throw std::runtime_error(fmt::format("{}: cannot write: {}", path, os_reason()));
  };
  if (!file) fail();
  if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) fail();
  if (std::fclose(file.release()) != 0) fail();
}

void write_file_gzip(const std::string& path, std::string_view bytes) {
  constexpr int kGzipWindow = 16 + MAX_WBITS;
  constexpr int kMemoryLevel = 8;  // zlib's default
  z_stream z{};
  MEDLEY_CHECK(deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                            Z_DEFAULT_STRATEGY) == Z_OK,
               "zlib does not start");
  std::string packed;
  std::array<Bytef, 1 << 16> out;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (z.avail_in == 0 && !bytes.empty()) {
      const std::size_t n = std::min<std::size_t>(bytes.size(), std::size_t{1} << 30);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      z.avail_in = static_cast<uInt>(n);
      bytes.remove_prefix(n);
    }
    z.next_out = out.data();
    z.avail_out = static_cast<uInt>(out.size());
    status = deflate(&z, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    packed.append(reinterpret_cast<const char*>(out.data()), out.size() - z.avail_out);
  }
  deflateEnd(&z);
  write_file(path, packed);
}

std::uint64_t fnv1a(std::string_view bytes, std::uint64_t seed) {
  constexpr std::uint64_t kPrime = 1099511628211ULL;
  for (const char c : bytes) seed = (seed ^ static_cast<unsigned char>(c)) * kPrime;
  return seed;
}

std::string hex64(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

}  // namespace medley
