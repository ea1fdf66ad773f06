# What is installed beside programs and library: the service, manual pages, and what other builds find the library by; and the Debian
# package of all that. A wheel has none of it.
if(SKBUILD)
  return()
endif()
include(CMakePackageConfigHelpers)

install(EXPORT PenstockTargets NAMESPACE Penstock:: DESTINATION lib/cmake/Penstock)
configure_package_config_file(cmake/PenstockConfig.cmake.in ${CMAKE_BINARY_DIR}/PenstockConfig.cmake
  INSTALL_DESTINATION lib/cmake/Penstock)
# The library's major version is its interface's.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/PenstockConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/PenstockConfig.cmake ${CMAKE_BINARY_DIR}/PenstockConfigVersion.cmake
  DESTINATION lib/cmake/Penstock)
# The prefix is known when it is installed, not before; and only one of /usr is the system's, with a service and its settings.
install(CODE "
  set(PROJECT_VERSION ${PROJECT_VERSION})
  configure_file(\"${CMAKE_SOURCE_DIR}/cmake/penstock.pc.in\" \"${CMAKE_BINARY_DIR}/penstock.pc\" @ONLY)
  if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    set(systemd \"${CMAKE_SOURCE_DIR}/config/systemd\")
    file(INSTALL \${systemd}/penstockd.service \${systemd}/penstockd.socket DESTINATION /usr/lib/systemd/system)
    file(INSTALL \${systemd}/penstock.sysusers DESTINATION /usr/lib/sysusers.d RENAME penstock.conf)
    file(INSTALL \${systemd}/penstock.tmpfiles DESTINATION /usr/lib/tmpfiles.d RENAME penstock.conf)
    file(INSTALL \${systemd}/penstockd.textproto DESTINATION /etc/penstock)
  endif()")
install(FILES ${CMAKE_BINARY_DIR}/penstock.pc DESTINATION lib/pkgconfig)
install(FILES docs/man/penstock.1 DESTINATION share/man/man1)
install(FILES docs/man/penstockd.textproto.5 DESTINATION share/man/man5)
install(FILES docs/man/penstockd.8 DESTINATION share/man/man8)
install(FILES NOTICE README.md SECURITY.md config/penstockd.textproto DESTINATION share/doc/penstock)
install(FILES LICENSE DESTINATION share/doc/penstock RENAME copyright)
install(DIRECTORY config/pipelines DESTINATION share/doc/penstock)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME penstock)
set(CPACK_PACKAGE_CONTACT "Penstock <penstock@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Data loader daemon: ready batches in shared memory for trainers")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS systemd)
# Loaded when a pipeline decodes FLAC, OGG or MP3.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS libsndfile1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_SOURCE_DIR}/config/debian/conffiles ${CMAKE_SOURCE_DIR}/config/debian/postinst
  ${CMAKE_SOURCE_DIR}/config/debian/prerm ${CMAKE_SOURCE_DIR}/config/debian/postrm
  ${CMAKE_SOURCE_DIR}/config/debian/triggers)
include(CPack)
