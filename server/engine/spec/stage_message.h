// A stage of a spec by protobuf's reflection: which op it holds, and the texts of its expressions.
//
// Threads: functions without state.
#pragma once

#include "penstock/v1/pipeline.pb.h"

namespace penstock {

// The field of Stage that is set, or null.
const google::protobuf::FieldDescriptor* OpField(const v1::Stage& stage);

// The message of that field, or null.
const google::protobuf::Message* OptionsOf(const v1::Stage& stage);
google::protobuf::Message* MutableOptionsOf(v1::Stage* stage);

// Random functions without a seed get one, in every expression of the stage's op.
void GiveSeeds(v1::Stage* stage);

// Whether an expression of an op calls a random function.
bool CallsRandom(const v1::Stage& stage);

}  // namespace penstock
