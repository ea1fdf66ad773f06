#include "client/samples/photo.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <memory>

// jpeglib.h needs FILE and size_t declared before it.
#include <jpeglib.h>

#include <algorithm>
#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/files/match_files.h"

namespace penstock::samples {
namespace {

// libjpeg reports a fatal error by calling a function that must not return.
struct ErrorManager {
  jpeg_error_mgr base;
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
};

void Escape(j_common_ptr info) {
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  info->err->format_message(info, manager->message);
  std::longjmp(manager->escape, 1);
}

void IgnoreMessage(j_common_ptr) {}

jpeg_error_mgr* Install(ErrorManager* manager) {
  jpeg_error_mgr* base = jpeg_std_error(&manager->base);
  base->error_exit = Escape;
  base->output_message = IgnoreMessage;
  return base;
}

// No object with a destructor may live in this frame: longjmp would skip it.
bool Decode(std::FILE* file, Photo* photo, ErrorManager* errors) {
  jpeg_decompress_struct info = {};
  info.err = Install(errors);
  jpeg_create_decompress(&info);
  if (setjmp(errors->escape) != 0) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_stdio_src(&info, file);
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  const int side = static_cast<int>(std::max(info.image_width, info.image_height));
  for (info.scale_denom = 1; info.scale_denom < 8; info.scale_denom *= 2) {
    if (side <= kPhotoSideMax * static_cast<int>(info.scale_denom)) break;
  }
  jpeg_start_decompress(&info);
  photo->width = static_cast<int>(info.output_width);
  photo->height = static_cast<int>(info.output_height);
  photo->rgb.resize(size_t{3} * info.output_width * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = photo->rgb.data() + size_t{3} * info.output_width * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return true;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

absl::StatusOr<Photo> ReadJpeg(const std::string& path) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  auto errors = std::make_unique<ErrorManager>();
  Photo photo;
  if (!Decode(file.get(), &photo, errors.get())) {
    return absl::DataLossError(absl::StrCat("cannot decode: ", errors->message, " (", path, ")"));
  }
  return photo;
}

absl::StatusOr<std::vector<Photo>> ReadPhotos(const std::vector<std::string>& patterns, int width) {
  auto paths = ctl::MatchFiles(patterns);
  if (!paths.ok()) return paths.status();
  std::vector<Photo> photos;
  for (const std::string& path : *paths) {
    auto photo = ReadJpeg(path);
    if (!photo.ok()) return photo.status();
    if (photo->width < width || photo->height < width * 3 / 4) {
      return absl::InvalidArgumentError(absl::StrCat("photograph smaller than ", width, "x",
                                                     width * 3 / 4, ": ", photo->width, "x",
                                                     photo->height, " pixels (", path, ")"));
    }
    photos.push_back(*std::move(photo));
  }
  return photos;
}

Photo CutAndScale(const Photo& photo, int x, int y, int cut_width, int cut_height, int width,
                  int height) {
  Photo result{width, height, std::vector<uint8_t>(size_t{3} * width * height)};
  uint8_t* out = result.rgb.data();
  for (int row = 0; row < height; ++row) {
    const int top = y + row * cut_height / height;
    const int bottom = y + (row + 1) * cut_height / height;
    for (int column = 0; column < width; ++column) {
      const int left = x + column * cut_width / width;
      const int right = x + (column + 1) * cut_width / width;
      uint32_t sum[3] = {};
      for (int j = top; j < bottom; ++j) {
        const uint8_t* pixel = photo.rgb.data() + size_t{3} * (size_t(j) * photo.width + left);
        for (int i = left; i < right; ++i, pixel += 3) {
          sum[0] += pixel[0];
          sum[1] += pixel[1];
          sum[2] += pixel[2];
        }
      }
      const uint32_t count = static_cast<uint32_t>((bottom - top) * (right - left));
      for (uint32_t value : sum) *out++ = static_cast<uint8_t>((value + count / 2) / count);
    }
  }
  return result;
}

std::string EncodeJpeg(const Photo& photo, int quality) {
  // The default error manager exits the process; with input from memory only lack of memory gets
  // there.
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long num_bytes = 0;  // NOLINT: libjpeg's own type
  jpeg_mem_dest(&info, &bytes, &num_bytes);
  info.image_width = static_cast<JDIMENSION>(photo.width);
  info.image_height = static_cast<JDIMENSION>(photo.height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);  // 4:2:0 is among them
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row =
        const_cast<uint8_t*>(photo.rgb.data()) + size_t{3} * photo.width * info.next_scanline;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string result(reinterpret_cast<char*>(bytes), num_bytes);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return result;
}

}  // namespace penstock::samples
