# How gradstep is built when it is the project itself: -O2, ccache and mold where they are. A project that adds it as a
# subdirectory decides these things for itself.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()
# The heavy work is libtorch's own, so -O3 gains nothing. The target gradstep_flags adds NDEBUG in every build type.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g -DNDEBUG")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(GRADSTEP_MOLD mold)
if(GRADSTEP_MOLD)
  # mold 1.10 (Debian 12) places the read-only part of some programs where nothing is mapped; they do not start then.
  add_link_options(-fuse-ld=mold -Wl,-z,norelro)
endif()

# ccache needs to be told that a precompiled header's macros and times do not matter, and that clones share results.
find_program(GRADSTEP_CCACHE ccache)
if(GRADSTEP_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    CCACHE_NOHASHDIR=1 ${GRADSTEP_CCACHE})
endif()
