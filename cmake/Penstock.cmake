# Compiler settings and the four ways in which this project declares a target.

include_guard()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/cmake/ccache.sh ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

option(PENSTOCK_WERROR "Treat warnings as errors" OFF)
# In a wheel, programs go where pip puts scripts.
if(SKBUILD)
  set(PENSTOCK_INSTALL_BINDIR ${SKBUILD_SCRIPTS_DIR})
endif()
set(PENSTOCK_INSTALL_BINDIR "bin" CACHE STRING "Where install() puts the programs")
set(PENSTOCK_SANITIZE "" CACHE STRING "Sanitizers to build with, such as address,undefined")

# What every target of the project is compiled with. No contraction: g++ would fuse a separate multiply and
# add where the instruction set has FMA, and the bytes of a batch would depend on the machine.
add_library(penstock_settings INTERFACE)
target_include_directories(penstock_settings INTERFACE ${CMAKE_SOURCE_DIR})
# Everything is compiled for threads: g++ takes a precompiled header only where that option is the same.
target_compile_options(penstock_settings INTERFACE -pthread -ffp-contract=off -Wall -Wextra -Wno-unused-parameter)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(penstock_settings INTERFACE -march=x86-64-v2)
endif()
if(PENSTOCK_WERROR)
  target_compile_options(penstock_settings INTERFACE -Werror)
  # g++ 12 takes values inside of its own intrinsics and of inlined containers for uninitialized, and the ends of joined strings for
  # overlapping (GCC bugs 105593 and 105329): these are shown, and end no build.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(penstock_settings INTERFACE -Wno-error=uninitialized -Wno-error=maybe-uninitialized -Wno-error=restrict)
  endif()
endif()
# How long a vector of SVE is, only the processor says. Kernels count on a length that is known when they are compiled: NEON serves.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  target_compile_definitions(penstock_settings INTERFACE "HWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")
endif()
if(PENSTOCK_SANITIZE)
  # Half the time to compile of -O2 -g; what the checks cost hides the difference in the tests' own time.
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  # One instruction set is enough for a sanitizer, and an eighth of the time to compile.
  target_compile_definitions(penstock_settings INTERFACE HWY_COMPILE_ONLY_STATIC)
  # What AddressSanitizer and a null page show anyway is not checked twice, and what is found ends the program: a third of the time
  # to compile.
  target_compile_options(penstock_settings INTERFACE -fsanitize=${PENSTOCK_SANITIZE} -fno-sanitize=null,vptr,object-size
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(penstock_settings INTERFACE -fsanitize=${PENSTOCK_SANITIZE})
endif()
if(PENSTOCK_FUZZ)
  # Coverage in all libraries: libFuzzer would otherwise be led by the few lines of its targets alone.
  target_compile_options(penstock_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Sets `sources` to every .cc of the current folder and of its rooms: folders that are in the list, and no others.
macro(penstock_sources)
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  file(GLOB in_rooms RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS */*.cc)
  foreach(source ${in_rooms})
    get_filename_component(room ${source} DIRECTORY)
    if(room IN_LIST ARG_ROOMS)
      list(APPEND sources ${source})
    elseif(ARG_ROOMS)
      message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/${source}: its folder is not among the ROOMS of CMakeLists.txt")
    endif()
  endforeach()
endmacro()

# penstock_library(NAME [ROOMS folder...] [DEPS target...]): a static library of every .cc in the current folder, and in those folders of it.
function(penstock_library name)
  cmake_parse_arguments(ARG "" "" "ROOMS;DEPS" ${ARGN})
  penstock_sources()
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE penstock_settings ${ARG_DEPS})
    return()
  endif()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC penstock_settings ${ARG_DEPS})
endfunction()

# penstock_objects(NAME [ROOMS folder...] [DEPS target...]): the same as an OBJECT library, for files that register themselves
# by a static object: a linker drops such files from a static library without a word.
function(penstock_objects name)
  cmake_parse_arguments(ARG "" "" "ROOMS;DEPS" ${ARGN})
  penstock_sources()
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE penstock_settings ${ARG_DEPS})
    return()
  endif()
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PUBLIC penstock_settings ${ARG_DEPS})
endfunction()

# penstock_test(NAME [SECONDS n] [DEPS target...]): one test program of every *_test.cc in the current folder and in the folders of it; each test
# case is a test of ctest. A name may hold no semicolon, at which CMake would make two names of it: a name that is no case fails. SECONDS: what the longest case takes; ctest begins with the longest until it has measured them.
function(penstock_test name)
  cmake_parse_arguments(ARG "" "SECONDS" "DEPS" ${ARGN})
  if(NOT ARG_SECONDS)
    set(ARG_SECONDS 0)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS *_test.cc)
  file(GLOB in_rooms CONFIGURE_DEPENDS */*_test.cc)
  foreach(source ${in_rooms})
    # A folder with a program of its own is none of this one's.
    get_filename_component(room ${source} DIRECTORY)
    if(NOT EXISTS ${room}/CMakeLists.txt)
      list(APPEND sources ${source})
    endif()
  endforeach()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE penstock_test_main ${ARG_DEPS})
  # Some cases take ten times as long with a sanitizer.
  set(seconds_max 300)
  if(PENSTOCK_SANITIZE)
    set(seconds_max 900)
  endif()
  catch_discover_tests(${name} TEST_PREFIX "${name}: " EXTRA_ARGS -w NoTests PROPERTIES TIMEOUT ${seconds_max} COST ${ARG_SECONDS})
endfunction()
