# cmake --install: headers, library, program and the package files that find_package(gradstep) reads.
include(CMakePackageConfigHelpers)
set(gradstep_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gradstep)

install(TARGETS gradstep EXPORT GradstepTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/gradstep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT GradstepTargets NAMESPACE gradstep:: DESTINATION ${gradstep_package_dir})
# A component of its own, so that only those who ask for it need libcurl and OpenSSL.
if(TARGET gradstep_download)
  install(TARGETS gradstep_download EXPORT GradstepDownloadTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT GradstepDownloadTargets NAMESPACE gradstep:: DESTINATION ${gradstep_package_dir})
endif()
if(TARGET gradstep_app)
  install(TARGETS gradstep_app EXPORT GradstepAppTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT GradstepAppTargets NAMESPACE gradstep:: DESTINATION ${gradstep_package_dir})
endif()
configure_package_config_file(cmake/gradstepConfig.cmake.in ${PROJECT_BINARY_DIR}/gradstepConfig.cmake
  INSTALL_DESTINATION ${gradstep_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gradstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gradstepConfig.cmake ${PROJECT_BINARY_DIR}/gradstepConfigVersion.cmake
  cmake/GradstepTorch.cmake cmake/TorchLayout.cmake DESTINATION ${gradstep_package_dir})

# The program finds the LibTorch it was built with. Said in so many words, since cmake would add every link folder by itself.
if(TARGET gradstep_program)
  set_target_properties(gradstep_program PROPERTIES INSTALL_RPATH_USE_LINK_PATH OFF
    INSTALL_RPATH "${gradstep_torch_library_dirs}")
  install(TARGETS gradstep_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
