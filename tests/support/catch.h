// The one place that names Catch2's header, so that a change of its major version is a change of
// this file.
#pragma once

#include <catch2/catch.hpp>
