// Home of the precompiled header: cmake compiles src/pch.h for this file, and every other target uses that.
