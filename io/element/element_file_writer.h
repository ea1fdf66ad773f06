// A file of computed elements (element_file.h): writing.
//
// Elements get their places in order, by one thread; their bytes are then written in any order and
// by any threads, and the rest at the end. Until that is durable the file has another name, which
// nobody reads; when the writer goes before that, or dies, nothing is left but that.
//
// In a compressed file the places follow when the bytes are known: Write() gives them, and they are
// told to Place().
//
// An object at an address takes each byte once: so its head is written first, and who writes its
// elements says where what is in front of them ends, since what lies between belongs to nobody.
//
// Threads:  Add(), Place(), elements() and bytes() by one; Write() by any; Finish() by one, behind
//           all of them.
// Owns:     the file and its lock; the index, 32 bytes an element.
// Cost:     Write() copies elements below 256 KiB once, to write few large pieces.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/disk.h"
#include "io/element/element_file.h"

namespace penstock {

class ElementFileWriter {
 public:
  // Unavailable while another writer has the same file. `disk` must outlive it. `first`: the first
  // element's number in its dataset.
  static absl::StatusOr<std::unique_ptr<ElementFileWriter>> Create(Disk& disk,
                                                                   const std::string& path,
                                                                   const ElementKey& key,
                                                                   const ElementSchema& schema,
                                                                   uint64_t first = 0);
  ~ElementFileWriter();
  ElementFileWriter(const ElementFileWriter&) = delete;
  ElementFileWriter& operator=(const ElementFileWriter&) = delete;

  // What the file would have with one more element, if it ended behind it.
  uint64_t BytesWith(uint32_t length) const;
  uint64_t bytes() const;
  uint64_t first() const { return first_; }
  // Whether each byte is written once, and none is left out.
  bool writes_each_byte() const { return writes_each_byte_; }
  // Behind the last element that has a place.
  uint64_t end() const { return end_; }
  uint64_t elements() const { return index_.size(); }
  // Gives the next element its place: returns it with `at` filled in, unless the file is
  // compressed.
  ElementFile::Element Add(ElementFile::Element element);

  // Writes elements that follow each other, from the file's number `begin` on, at the places that
  // they have got. (Those are given, since Add() may go on meanwhile.) Of a compressed file it
  // fills them in. `from`: end() in front of them, for a file that writes each byte.
  absl::Status Write(uint64_t begin, absl::Span<ElementFile::Element> places,
                     absl::Span<const uint8_t* const> data, uint64_t from = 0);
  // The places that Write() has given, of the elements from number `begin` on.
  void Place(uint64_t begin, absl::Span<const ElementFile::Element> places);

  // Ends the file behind `elements` of its elements, or earlier where the disk is full, and gives
  // it its name. Any error but that of a full disk gives it up.
  absl::Status Finish(uint64_t elements, bool whole);

  const std::string& path() const { return path_; }

 private:
  ElementFileWriter(Disk& disk, std::string path, const ElementKey& key, std::string schema,
                    bool compressed, uint64_t first, std::unique_ptr<WrittenFile> file);
  absl::Status WriteAtPlaces(uint64_t begin, absl::Span<const ElementFile::Element> places,
                             absl::Span<const uint8_t* const> data, uint64_t from);
  absl::Status WriteHead();
  absl::Status WriteEnd(uint64_t elements, bool whole);
  std::string partial_path() const { return path_ + ".partial"; }

  Disk& disk_;
  const std::string path_;
  const ElementKey key_;
  const std::string schema_;
  const bool compressed_;
  const bool writes_each_byte_;
  const uint64_t first_;
  std::unique_ptr<WrittenFile> file_;
  std::vector<ElementFile::Element> index_;
  // Of the elements. Written under the mutex, read by Add() and its like only where no Write()
  // changes it, or where a smaller one does no harm.
  std::atomic<uint64_t> end_{kElementHeaderBytes};
  std::mutex mutex_;
  bool published_ = false;
};

}  // namespace penstock
