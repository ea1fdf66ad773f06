// Where the rows of a file are that keeps them by columns: a RecordFormat whose records are no
// stretches of bytes is one as well. Their offset, in references and places, is then the number of
// the row in its file.
//
// Threads:  constant after construction; safe from any thread.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

class RowPlaces {
 public:
  virtual ~RowPlaces() = default;

  // For messages: "row 1017 of the file, row 17 of record batch 1".
  virtual std::string Describe(uint64_t row) const = 0;
};

}  // namespace penstock
