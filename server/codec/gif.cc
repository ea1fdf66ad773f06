#include "server/codec/gif.h"

#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/codec/damaged.h"

namespace penstock {
namespace {

// Of a pixel that is decoded, as StopLook counts it.
constexpr uint64_t kPixelWork = 8;
// And of a read beside its bytes.
constexpr uint64_t kReadWork = 16;

// What is left of the file.
struct Source {
  const uint8_t* data;
  size_t size;
  uint64_t work = 0;  // since it was looked whether it is wanted
};

int ReadSource(GifFileType* gif, GifByteType* out, int count) {
  auto* const source = static_cast<Source*>(gif->UserData);
  const size_t taken = std::min(source->size, static_cast<size_t>(std::max(count, 0)));
  // giflib passes over any number of blocks by itself. It takes what is not wanted for a file that
  // ends, and whoever hears of that from it looks (CheckStop()).
  source->work += taken + kReadWork;
  if (source->work >= StopLook::kWork) {
    source->work = 0;
    if (IsStopped()) return 0;
  }
  if (taken > 0) std::memcpy(out, source->data, taken);
  source->data += taken;
  source->size -= taken;
  return static_cast<int>(taken);
}

struct Close {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};
using GifFile = std::unique_ptr<GifFileType, Close>;

absl::Status Damaged(int64_t frame, int error) {
  CheckStop();
  const char* const words = GifErrorString(error);
  return DamagedData("GIF", words != nullptr ? words : "no reason given", " (frame ", frame, ")");
}

absl::StatusOr<GifFile> Open(Source* source) {
  int error = D_GIF_SUCCEEDED;
  GifFile gif(DGifOpen(source, ReadSource, &error));
  if (gif == nullptr) return Damaged(0, error);
  return gif;
}

// Goes on to the next frame, whose header is read then; false when there is none that is whole up
// to there. `transparent` is the index of the color that leaves pixels as they are, or
// NO_TRANSPARENT_COLOR.
bool GoToFrame(GifFileType* gif, int* transparent) {
  *transparent = NO_TRANSPARENT_COLOR;
  bool is_controlled = false;
  while (true) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif, &type) != GIF_OK) return false;
    if (type == IMAGE_DESC_RECORD_TYPE) return true;
    if (type != EXTENSION_RECORD_TYPE) return false;
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif, &code, &block) != GIF_OK) return false;
    // The first control block in front of a frame is the frame's.
    if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr && !is_controlled) {
      is_controlled = true;
      GraphicsControlBlock control;
      if (DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
        *transparent = control.TransparentColor;
    }
    // One block is read even behind the end of an extension that has none, as DGifSlurp does.
    do {
      if (DGifGetExtensionNext(gif, &block) != GIF_OK) return false;
    } while (block != nullptr);
  }
}

// The order of an interlaced frame's rows: from each of these on, so many further.
struct Interlace {
  int first;
  int step;
};
constexpr Interlace kInterlaced[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
constexpr Interlace kPlain[] = {{0, 1}};

// Draws the frame whose header has been read onto a canvas of `shape`.
absl::Status DrawFrame(GifFileType* gif, int64_t frame, int transparent, const FramesShape& shape,
                       uint8_t* canvas) {
  const GifImageDesc& place = gif->Image;
  const ColorMapObject* const colors = place.ColorMap != nullptr ? place.ColorMap : gif->SColorMap;
  if (colors == nullptr) return DamagedData("GIF", "no color map (frame ", frame, ")");
  std::vector<GifByteType> row(static_cast<size_t>(place.Width));
  const int64_t drawn = std::clamp<int64_t>(shape.width - place.Left, 0, place.Width);
  StopLook look;
  for (const Interlace& pass :
       place.Interlace ? absl::MakeConstSpan(kInterlaced) : absl::MakeConstSpan(kPlain)) {
    for (int y = pass.first; y < place.Height; y += pass.step) {
      look.Did(row.size() * kPixelWork);
      if (DGifGetLine(gif, row.data(), place.Width) != GIF_OK) return Damaged(frame, gif->Error);
      if (place.Top + y >= shape.height) continue;
      uint8_t* pixel = canvas + ((place.Top + y) * shape.width + place.Left) * shape.channels;
      for (int64_t x = 0; x < drawn; ++x, pixel += shape.channels) {
        const int index = row[static_cast<size_t>(x)];
        if (index == transparent) continue;
        if (index >= colors->ColorCount) {
          return DamagedData("GIF", "color ", index, " of ", colors->ColorCount, " (frame ", frame,
                             ")");
        }
        const GifColorType& color = colors->Colors[index];
        pixel[0] = color.Red;
        pixel[1] = color.Green;
        pixel[2] = color.Blue;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FramesShape> GifDecoder::Start(const uint8_t* data, size_t size,
                                              const GifOptions& options) {
  data_ = data;
  size_ = size;
  shape_.channels = 3;
  // TensorFlow looks at these, giflib at the first three.
  if (size < 4 || std::memcmp(data, "GIF8", 4) != 0)
    return absl::DataLossError(absl::StrCat("no GIF image by its first bytes: ", size, " bytes"));
  Source source{data, size};
  absl::StatusOr<GifFile> gif = Open(&source);
  if (!gif.ok()) return gif.status();
  int transparent = 0;
  while (GoToFrame(gif->get(), &transparent)) {
    // Of DGifGetImageDesc() all that giflib would keep of each frame is left out.
    if (DGifGetImageHeader(gif->get()) != GIF_OK) {
      // Without its whole header it is no frame.
      if (shape_.frames > 0) break;
      return Damaged(shape_.frames, (*gif)->Error);
    }
    const GifImageDesc& place = (*gif)->Image;
    if (place.Width <= 0 || place.Height <= 0) {
      if (shape_.frames > 0) break;
      return DamagedData("GIF", "a frame of ", place.Width, " x ", place.Height, " pixels (frame ",
                         shape_.frames, ")");
    }
    ++shape_.frames;
    shape_.height = std::max<int64_t>(shape_.height, place.Height);
    shape_.width = std::max<int64_t>(shape_.width, place.Width);
    const int64_t wanted = options.first_frame_only ? 1 : shape_.frames;
    // Sides are below 2^16 and frames below 2^28, as each takes ten bytes of a record: this cannot
    // wrap.
    if (wanted * shape_.height * shape_.width > kGifPixelsMax) {
      return absl::DataLossError(absl::StrCat("GIF image is too large: ", wanted, " frames of ",
                                              shape_.width, " x ", shape_.height, " > ",
                                              kGifPixelsMax, " pixels"));
    }
    int code_bits = 0;
    GifByteType* block = nullptr;
    int result = DGifGetCode(gif->get(), &code_bits, &block);
    while (result == GIF_OK && block != nullptr) result = DGifGetCodeNext(gif->get(), &block);
    if (result != GIF_OK) return Damaged(shape_.frames - 1, (*gif)->Error);
  }
  CheckStop();
  if (shape_.frames == 0) return DamagedData("GIF", "no frame in ", size, " bytes");
  if (options.first_frame_only) shape_.frames = 1;
  return shape_;
}

absl::Status GifDecoder::Decode(uint8_t* pixels) const {
  Source source{data_, size_};
  absl::StatusOr<GifFile> gif = Open(&source);
  if (!gif.ok()) return gif.status();
  const size_t canvas_bytes = shape_.bytes() / static_cast<size_t>(shape_.frames);
  for (int64_t frame = 0; frame < shape_.frames; ++frame, pixels += canvas_bytes) {
    CheckStop();
    int transparent = 0;
    if (!GoToFrame(gif->get(), &transparent) || DGifGetImageHeader(gif->get()) != GIF_OK)
      return Damaged(frame, (*gif)->Error);
    if (frame == 0) {
      ClearInPieces(pixels, canvas_bytes);
    } else {
      CopyInPieces(pixels, pixels - canvas_bytes, canvas_bytes);
    }
    const absl::Status status = DrawFrame(gif->get(), frame, transparent, shape_, pixels);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace penstock
