// Where the certificates of authorities are, by which servers of https are known.
//
// Threads:  any.
#pragma once

#include <string>
#include <vector>

namespace penstock {

// The bundles of Debian and Ubuntu, of RHEL, Fedora and Amazon Linux, and of SUSE. The first is the
// one that libcurl of Debian looks for by itself, wherever the wheel has brought it.
const std::vector<std::string>& KnownAuthorities();

// A file of certificates (PEM): `named`, if it is not ""; else the first of `known` that can be
// read, but "" where that is the first of all, or where there is none: libcurl's own.
std::string FindAuthorities(const std::string& named,
                            const std::vector<std::string>& known = KnownAuthorities());

}  // namespace penstock
