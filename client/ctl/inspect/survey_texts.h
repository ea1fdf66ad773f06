// A survey of Examples in words: for people, for programs, and as what reads such records.
//
// Threads:  any; no state.
#pragma once

#include <string>
#include <vector>

#include "client/ctl/inspect/example_survey.h"

namespace penstock::ctl {

// Where the records are from.
struct SurveyedFiles {
  std::vector<std::string> patterns;  // paths and globs, for a spec
  std::string compression;            // "GZIP", "ZLIB" or "ZSTD"; "": none
  uint64_t files = 0;
  bool whole = true;  // every record of them was looked at
};

// A line for each feature: its type, in how many records it is, how many values it has, and their
// range.
std::string SurveyTable(const ExampleSurvey& survey, const SurveyedFiles& files);

// The same as one JSON object.
std::string SurveyJson(const ExampleSurvey& survey, const SurveyedFiles& files);

// A spec that reads the files, parses each feature and makes batches, for `penstock create`.
std::string SurveySpec(const ExampleSurvey& survey, const SurveyedFiles& files);

// Python that does the same: a dict of penstock.io's features, whose names are tf.io's, and a
// dataset.
std::string SurveyPython(const ExampleSurvey& survey, const SurveyedFiles& files);

}  // namespace penstock::ctl
