# Examples: one program for each examples/*.cpp, in <build>/examples/. They see what users see: the public headers and LibTorch.
file(GLOB example_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp)
foreach(source IN LISTS example_sources)
  cmake_path(GET source STEM name)
  set(target gradstep_example_${name})
  add_executable(${target} ${source})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  target_link_libraries(${target} PRIVATE gradstep gradstep_flags)
  gradstep_use_pch(${target})
endforeach()

# The loss comes down from 0.69 (two classes, a coin).
if(GRADSTEP_BUILD_TESTS)
  add_test(NAME examples.01_minimal COMMAND gradstep_example_01_minimal)
  set_tests_properties(examples.01_minimal PROPERTIES PASS_REGULAR_EXPRESSION "update 200  loss 0[.]0" TIMEOUT 300)
endif()
