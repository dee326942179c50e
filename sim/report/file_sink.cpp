#include <fmt/format.h>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "sim/report/output_directory.h"

namespace medley {

namespace io = boost::iostreams;

namespace {
/// A C file whose errors are exceptions with the system's reason.
class CFile {
 public:
  explicit CFile(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "wb")) {
    if (!file_) fail();
  }
  ~CFile() {
    if (file_) std::fclose(file_);
  }
  CFile(const CFile&) = delete;
  CFile& operator=(const CFile&) = delete;
  void write(const char* bytes, std::size_t n) {
    if (std::fwrite(bytes, 1, n, file_) != n) fail();
  }
  void close() {
    std::FILE* file = file_;
    file_ = nullptr;
    if (file && std::fclose(file) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw std::runtime_error(fmt::format("{}: cannot write: {}", path_, std::strerror(errno)));
  }
  std::string path_;
  std::FILE* file_;
};

struct CFileSink {
  using char_type = char;
  using category = io::sink_tag;
  CFile* file;
  std::streamsize write(const char* bytes, std::streamsize n) {
    file->write(bytes, static_cast<std::size_t>(n));
    return n;
  }
};
}  // namespace

struct FileSink::Impl {
  Impl(const std::string& path, bool gzip) : file(path) {
    if (!gzip) return;
    packed = std::make_unique<io::filtering_ostream>();
    // No time stamp and no name in the header: the same rows give the same bytes.
    packed->push(io::gzip_compressor(io::gzip_params(io::gzip::best_speed)));
    packed->push(CFileSink{&file});
    packed->exceptions(std::ios::badbit);  // what CFile throws comes through
  }
  CFile file;
  std::unique_ptr<io::filtering_ostream> packed;
};

FileSink::FileSink(const std::string& path, bool gzip) : impl_(std::make_unique<Impl>(path, gzip)) {
  buffer_.reserve(kBufferBytes + (std::size_t{1} << 12));
}
FileSink::~FileSink() = default;

void FileSink::flush() {
  if (impl_->packed) {
    impl_->packed->write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  } else {
    impl_->file.write(buffer_.data(), buffer_.size());
  }
  buffer_.clear();
}

void FileSink::close() {
  flush();
  if (impl_->packed) {
    io::close(*impl_->packed);
    impl_->packed.reset();
  }
  impl_->file.close();
}

}  // namespace medley
