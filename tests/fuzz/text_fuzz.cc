// Looks for bytes that make what reads strings inside of a map read or write where it must not:
// fields of CSV, JSON Examples, TensorProtos, numbers (fault 21c). The first byte says which.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/strings/string_view.h"
#include "base/arena.h"
#include "server/codec/csv_field.h"
#include "server/codec/json_example.h"
#include "server/codec/number_text.h"
#include "server/codec/tensor_proto.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const char* const text = reinterpret_cast<const char*>(data + 1);
  switch (data[0] % 4) {
    case 0: {
      const absl::string_view record(text, size - 1);
      for (const bool uses_quotes : {true, false}) {
        penstock::Arena arena;
        absl::string_view field;
        size_t at = 0;
        while (penstock::TakeCsvField(record, ',', uses_quotes, &at, &field, arena).ok() &&
               at < record.size()) {
          ++at;
        }
      }
      break;
    }
    case 1:
      (void)penstock::SerializeJsonExample(std::string_view(text, size - 1));
      break;
    case 2:
      (void)penstock::ParseTensorProto(data + 1, size - 1);
      break;
    default:
      for (const penstock::DType dtype :
           {penstock::DType::kInt32, penstock::DType::kInt64, penstock::DType::kUint32,
            penstock::DType::kUint64, penstock::DType::kFloat32, penstock::DType::kFloat64}) {
        uint8_t number[8];
        (void)penstock::ReadNumber(absl::string_view(text, size - 1), dtype, number);
      }
  }
  return 0;
}
