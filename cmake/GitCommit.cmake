# Hands the git commit to src/base/version.cpp alone, so that a new commit compiles that one small file again and nothing else.
# A commit or checkout changes the log of HEAD, which makes ninja configure again.
set(gradstep_git_commit "unknown")
find_program(GRADSTEP_GIT git)
if(GRADSTEP_GIT AND EXISTS "${PROJECT_SOURCE_DIR}/.git")
  execute_process(COMMAND ${GRADSTEP_GIT} rev-parse --short=12 HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE rc)
  if(rc EQUAL 0)
    set(gradstep_git_commit "${commit}")
  endif()
  execute_process(COMMAND ${GRADSTEP_GIT} rev-parse --git-path logs/HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    OUTPUT_VARIABLE git_log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  cmake_path(ABSOLUTE_PATH git_log BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(EXISTS "${git_log}")
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${git_log}")
  endif()
endif()
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/base/version.cpp PROPERTIES COMPILE_DEFINITIONS
  "GRADSTEP_GIT_COMMIT=\"${gradstep_git_commit}\"")
