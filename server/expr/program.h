// A compiled `map`: assignments in the expression language, typed and turned into a program over
// blocks of rows.
//
// Threads:  a Program is constant after Compile(); Run() is safe from any thread, each with its own
//           Arena.
// Cost:     Compile() allocates and may take a millisecond; Run() allocates nothing but from the
//           arena.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/arena.h"
#include "base/column.h"
#include "base/signature.h"

namespace penstock {
class FileSystem;
}

namespace penstock::expr {

// A named constant of a spec. Values are kept as given; `dtype` kInvalid marks a weak scalar.
struct NamedConstant {
  std::string name;
  DType dtype = DType::kInvalid;
  bool has_shape = false;  // false: a scalar for one value, else one axis
  Shape shape;
  std::vector<double> float_values;  // exactly one of these is filled
  std::vector<int64_t> int_values;
  std::vector<uint8_t> bytes = {};        // elements of `dtype` and `shape`, as they are
  std::vector<std::string> strings = {};  // of dtype kString and `shape`; without axes one, a text
};

// The text of one `map` stage.
struct MapSource {
  std::string stage;  // for messages
  std::vector<NamedConstant> constants;
  std::vector<std::string> lets;  // "name = expression", in order
  std::vector<std::string> outs;
  // Whether the stage stands behind `batch`: features have a leading axis of unknown size. Every
  // expression must then treat rows independently, so that a block of rows can be computed alone;
  // one that does not is refused by name.
  bool batched = false;
  // Those that functions may read, which outlive the program; null: none.
  FileSystem* files = nullptr;
};

class Program {
 public:
  virtual ~Program() = default;

  // The features that Run() writes. Shapes are those of one row, without the batch axis.
  virtual const Signature& output() const = 0;

  // Whether it calls random functions: `in` then has one more column, of each row's RowIdentity.
  virtual bool draws() const = 0;

  // Computes rows [0, rows). `in` has one column for each input feature, in the order of the
  // signature given to Compile(). An output of known size goes to out[i].data, row after row
  // without gaps; the columns of others, of strings and of unknown sizes, are set: they are views
  // of inputs or lie in the arena. On failure rows of `out` are undefined. `past_caches`: the
  // outputs are parts of something larger than the caches, which nobody reads before all of it is
  // written; so stores go past them where they can. All are done when Run() returns.
  virtual RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out, Arena& arena,
                        bool past_caches = false) const = 0;
  // The same where all outputs are of known size.
  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<uint8_t* const> out,
                Arena& arena) const;

  // The regions and kernels it was cut into, a line each: for `validate --explain`, tests and the
  // curious.
  virtual std::string DebugString() const = 0;
};

// Compiles consecutive maps into one program: the outputs of each are the features of the next.
// Shapes in `inputs` are those of one row. Errors are InvalidArgument and name the stage, the
// expression, the column in its text, what was expected and what was found.
absl::StatusOr<std::unique_ptr<Program>> Compile(const Signature& inputs,
                                                 absl::Span<const MapSource> maps);

}  // namespace penstock::expr
