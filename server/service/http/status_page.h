// The page that a browser shows: one file without anything from elsewhere (status_page.html).
#pragma once

namespace penstock {

extern const char kStatusPage[];

}  // namespace penstock
