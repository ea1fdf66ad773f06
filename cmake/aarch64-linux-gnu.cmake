# Compiles for arm64 on another machine, with Debian's cross compiler and a folder of Debian's packages for arm64, which
# PENSTOCK_SYSROOT names. Programs of the build (protoc, Python) are those of the machine that builds; what is made runs under qemu-user.
# `./dev test arm64` makes all of it.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# Compilations that CMake tries read this file in a project of their own.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PENSTOCK_SYSROOT PENSTOCK_PYTHON_HEADERS)
if(NOT PENSTOCK_SYSROOT)
  message(FATAL_ERROR "PENSTOCK_SYSROOT is the folder of Debian's packages for arm64; ./dev test arm64 makes one")
endif()
set(CMAKE_SYSROOT ${PENSTOCK_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${PENSTOCK_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${PENSTOCK_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${PENSTOCK_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${PENSTOCK_SYSROOT}/usr/share/pkgconfig)

# The binding is for a Python of arm64, of the version that the build machine's has: its headers, and the suffix that it asks for.
if(NOT PENSTOCK_PYTHON_HEADERS)
  set(PENSTOCK_PYTHON_HEADERS ${PENSTOCK_SYSROOT}/usr/include/python3.11)
endif()
string(REGEX REPLACE ".*python3\\." "3" python_version ${PENSTOCK_PYTHON_HEADERS})
# What makes a wheel has set it to those of the machine.
set(Python_INCLUDE_DIR ${PENSTOCK_PYTHON_HEADERS} CACHE PATH "Python's headers for arm64" FORCE)
set(SKBUILD_SOABI cpython-${python_version}-aarch64-linux-gnu)

set(CMAKE_CROSSCOMPILING_EMULATOR /usr/bin/qemu-aarch64-static;-L;${PENSTOCK_SYSROOT})
