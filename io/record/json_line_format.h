// Lines that are one JSON document each, without their ends, "\n" or "\r\n". A last line needs
// none. Lines of nothing but spaces, tabs and carriage returns are passed over. Where damage is
// skipped, a line that is no JSON document is damage; else nothing looks into it.
//
// Threads:  as RecordFormat: constant, and safe from any thread.
#pragma once

#include <memory>

#include "io/file/damage.h"
#include "io/record/record_format.h"

namespace penstock {

// `any_bytes`: bytes that are no UTF-8 are no damage. `on_damage`: of who reads them; without a
// policy that skips, lines that are no documents count where a record's ordinal is found without an
// index.
const std::shared_ptr<const RecordFormat>& JsonLineFormat(
    bool any_bytes, OnDamage on_damage = OnDamage::kSkipRecord);

}  // namespace penstock
