// safetensors: bytes equal to those of Python's writer, round trips, aliases, and a reader that refuses
// everything that is not whole.
#include "gradstep/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <random>

#include "gradstep/base/error.h"
#include "support/fuzz_seed.h"
#include "support/memory_file_system.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MemoryFileSystem;
using testing::message_of;
using ::testing::Not;
using testing::ScratchDir;
using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

at::Tensor one(double value, at::ScalarType type) { return torch::full({1}, value, at::kDouble).to(type); }

// Every type there is; given in no order at all.
Tensors all_types() {
  return {{"b", torch::arange(3, at::kFloat)},
          {"a", torch::tensor({{1, 2}, {3, 4}}, at::kLong)},
          {"h", one(1.5, at::kHalf)},
          {"bf", one(2, at::kBFloat16)},
          {"u", torch::tensor({1, 2, 3}, at::kByte)},
          {"i8", one(-1, at::kChar)},
          {"f64", torch::tensor(3.5, at::kDouble)},
          {"o", one(1, at::kBool)},
          {"i32", one(5, at::kInt)},
          {"i16", one(6, at::kShort)},
          {"e", torch::zeros({0, 4})},
          {"u16", one(6, at::kUInt16)},
          {"u32", one(6, at::kUInt32)},
          {"u64", one(6, at::kUInt64)},
          {"c", torch::complex(torch::ones({1}), torch::full({1}, 2.0F))},
          {"f8a", one(1, at::kFloat8_e5m2)},
          {"f8b", one(1, at::kFloat8_e4m3fn)}};
}

std::string written(const Tensors& tensors, const std::map<std::string, std::string>& metadata = {}) {
  MemoryFileSystem disk;
  write_safetensors(disk, "file", tensors, metadata);
  return disk.content("file");
}

SafetensorsFile read_bytes(const std::string& bytes) {
  const ScratchDir dir;
  return read_safetensors(dir.write("file", bytes));
}

std::string length_field(uint64_t length) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(length >> shift & 0xff);
  return bytes;
}

std::string file_of(const std::string& json, const std::string& data = "") {
  return length_field(json.size()) + json + data;
}

std::string refusal(const std::string& bytes) {
  const ScratchDir dir;
  const std::string path = dir.write("file", bytes);
  const std::string message = message_of<CheckpointError>([&] { (void)read_safetensors(path); });
  EXPECT_THAT(message, AllOf(HasSubstr(path), Not(HasSubstr("\n"))));
  return message;
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         std::string_view(static_cast<const char*>(a.const_data_ptr()), a.nbytes()) ==
             std::string_view(static_cast<const char*>(b.const_data_ptr()), b.nbytes());
}

// What safetensors.torch.save (0.8.0) gives for all_types() with metadata {"format": "pt"}.
TEST(Safetensors, BytesArePythons) {
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"u64":{"dtype":"U64","shape":[1],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"I64","shape":[2,2],"data_offsets":[8,40]},"f64":{"dtype":"F64","shape":[],"data_offsets":[40,48]},)"
      R"("c":{"dtype":"C64","shape":[1],"data_offsets":[48,56]},"b":{"dtype":"F32","shape":[3],"data_offsets":[56,68]},)"
      R"("e":{"dtype":"F32","shape":[0,4],"data_offsets":[68,68]},"u32":{"dtype":"U32","shape":[1],"data_offsets":[68,72]},)"
      R"("i32":{"dtype":"I32","shape":[1],"data_offsets":[72,76]},"bf":{"dtype":"BF16","shape":[1],"data_offsets":[76,78]},)"
      R"("h":{"dtype":"F16","shape":[1],"data_offsets":[78,80]},"u16":{"dtype":"U16","shape":[1],"data_offsets":[80,82]},)"
      R"("i16":{"dtype":"I16","shape":[1],"data_offsets":[82,84]},"f8b":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[84,85]},)"
      R"("f8a":{"dtype":"F8_E5M2","shape":[1],"data_offsets":[85,86]},"i8":{"dtype":"I8","shape":[1],"data_offsets":[86,87]},)"
      R"("u":{"dtype":"U8","shape":[3],"data_offsets":[87,90]},"o":{"dtype":"BOOL","shape":[1],"data_offsets":[90,91]}}       )";
  const std::string data(
      "\x06\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0"
      "\x0c@"
      "\0\0\x80?\0\0\0@\0\0\0\0\0\0\x80?\0\0\0@\x06\0\0\0\x05\0\0\0\0@\0>\x06\0\x06\0"
      "8<\xff\x01\x02\x03\x01",
      91);
  ASSERT_EQ(json.size(), 0x3e8U);
  EXPECT_EQ(written(all_types()), file_of(json, data));
}

TEST(Safetensors, BytesOfOddNamesArePythons) {
  EXPECT_EQ(
      written({{"q\"\\\n\xc3\xa9", torch::ones({1})}}),
      file_of(
          "{\"__metadata__\":{\"format\":\"pt\"},\"q\\\"\\\\\\n\xc3\xa9\":{\"dtype\":\"F32\",\"shape\":[1],"
          "\"data_offsets\":[0,4]}}   ",
          std::string("\0\0\x80?", 4)));
  EXPECT_EQ(written({}), file_of(R"({"__metadata__":{"format":"pt"}})"));
}

TEST(Safetensors, RoundTrip) {
  const ScratchDir dir;
  const Tensors tensors = all_types();
  write_safetensors(posix_file_system(), dir.file("file"), tensors, {{"epoch", "3"}, {"text", "a \"b\"\n"}});
  const SafetensorsFile file = read_safetensors(dir.file("file"));
  EXPECT_EQ(file.metadata,
            (std::map<std::string, std::string>{{"epoch", "3"}, {"format", "pt"}, {"text", "a \"b\"\n"}}));
  ASSERT_EQ(file.tensors.size(), tensors.size());
  const std::map<std::string, at::Tensor> read(file.tensors.begin(), file.tensors.end());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(same(read.at(name), tensor)) << name;
  EXPECT_EQ(file.tensors.front().first, "u64");
}

TEST(Safetensors, ViewsAreWrittenAsTheyLook) {
  const at::Tensor base = torch::arange(12, at::kFloat).reshape({3, 4}).requires_grad_();
  const SafetensorsFile file =
      read_bytes(written({{"t", base.t()}, {"row", base[1]}, {"slice", base.slice(1, 1, 3)}}));
  const std::map<std::string, at::Tensor> read(file.tensors.begin(), file.tensors.end());
  EXPECT_TRUE(torch::equal(read.at("t"), base.t()));
  EXPECT_TRUE(torch::equal(read.at("row"), base[1]));
  EXPECT_TRUE(torch::equal(read.at("slice"), base.slice(1, 1, 3)));
  EXPECT_EQ(file.metadata.size(), 1U);
}

TEST(Safetensors, SharedTensorsAreStoredOnce) {
  const at::Tensor shared = torch::rand({100});
  const std::string bytes = written({{"wte", shared},
                                     {"head", shared.view({100})},
                                     {"other", torch::rand({2})},
                                     {"empty1", torch::zeros({0})},
                                     {"empty2", torch::zeros({0})}});
  EXPECT_THAT(bytes, HasSubstr("\"alias:head\":\"wte\""));
  EXPECT_LT(bytes.size(), 1000U);
  const SafetensorsFile file = read_bytes(bytes);
  ASSERT_EQ(file.tensors.size(), 5U);
  EXPECT_EQ(file.tensors.back().first, "head");
  EXPECT_TRUE(torch::equal(file.tensors.back().second, shared));
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
}

TEST(Safetensors, RefusesWhatCannotBeStored) {
  EXPECT_THAT(
      message_of<CheckpointError>([] { (void)written({{"z", torch::zeros({1}, at::kComplexDouble)}}); }),
      AllOf(HasSubstr("tensor z"), HasSubstr("ComplexDouble")));
  EXPECT_THROW((void)written({{"\xff\xfe", torch::zeros({1})}}), CheckpointError);
  EXPECT_THROW((void)written({{"a", torch::zeros({1})}, {"a", torch::zeros({2})}}), c10::Error);
  EXPECT_THROW((void)written({{"a", at::Tensor()}}), c10::Error);
}

TEST(Safetensors, AFailedWriteKeepsTheOldFile) {
  for (int64_t failing = 0; failing < 6; ++failing) {
    MemoryFileSystem disk;
    disk.put("file", "old");
    disk.fail_call(failing);
    EXPECT_THAT(
        message_of<CheckpointError>([&] { write_safetensors(disk, "file", {{"a", torch::zeros({4})}}, {}); }),
        AllOf(HasSubstr("No space left"), HasSubstr("bytes in all")))
        << failing;
    EXPECT_EQ(disk.content("file"), "old");
    EXPECT_EQ(disk.num_files(), 1U);
  }
}

TEST(Safetensors, RefusesFilesThatAreNotThere) {
  EXPECT_THAT(message_of<CheckpointError>([] { (void)read_safetensors("/no/such/file"); }),
              HasSubstr("/no/such/file"));
  EXPECT_THAT(message_of<CheckpointError>([] { (void)read_safetensors("/tmp"); }),
              HasSubstr("expected a file"));
}

TEST(Safetensors, RefusesEveryTruncationAndExtension) {
  const std::string whole = written({{"a", torch::ones({3})}, {"b", torch::ones({2}, at::kLong)}});
  for (size_t size = 0; size < whole.size(); ++size) refusal(whole.substr(0, size));
  EXPECT_THAT(refusal(whole + "x"), HasSubstr("expected 28 bytes of data behind the header, found 29"));
}

TEST(Safetensors, RefusesHostileLengths) {
  for (const uint64_t length : {uint64_t{9}, uint64_t{100'000'001}, std::numeric_limits<uint64_t>::max(),
                                std::numeric_limits<uint64_t>::max() - 8, uint64_t{1} << 63}) {
    EXPECT_THAT(refusal(length_field(length) + "{}      "),
                HasSubstr("a header of " + std::to_string(length)));
  }
}

TEST(Safetensors, RefusesBadHeaders) {
  const std::string four(4, '\0');
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  const std::string good = entry(R"("F32")", "[1]", "[0,4]");
  EXPECT_EQ(read_bytes(file_of(R"({"a":)" + good + "}", four)).tensors.size(), 1U);
  EXPECT_EQ(read_bytes(file_of("{}")).tensors.size(), 0U);
  EXPECT_EQ(read_bytes(file_of(R"({"a":)" + good + "}   \n", four)).tensors.size(), 1U);

  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "begins with {"},
      {"   {}", "begins with {"},
      {"[]", "begins with {"},
      {"{", "expected JSON"},
      {"{}{}", "expected JSON"},
      {R"({"a":)" + good + R"(,"a":)" + good + "}", "key \"a\" is given twice"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       "key \"dtype\" is given twice"},
      {R"({"__metadata__":{"x":"1","x":"2"},"a":)" + good + "}", "key \"x\" is given twice"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", "lacks"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})", "unknown key \"more\""},
      {R"({"a":)" + entry(R"("F33")", "[1]", "[0,4]") + "}", "unknown dtype \"F33\""},
      {R"({"a":)" + entry("1", "[1]", "[0,4]") + "}", "a number where none belongs"},
      {R"({"a":)" + entry("[]", "[1]", "[0,4]") + "}", "a list where none belongs"},
      {R"({"a":)" + entry(R"("F32")", "[-1]", "[0,4]") + "}", "a negative number"},
      {R"({"a":)" + entry(R"("F32")", "[1.0]", "[0,4]") + "}", "a fraction"},
      {R"({"a":)" + entry(R"("F32")", "[1e0]", "[0,4]") + "}", "a fraction"},
      {R"({"a":)" + entry(R"("F32")", "[99999999999999999999]", "[0,4]") + "}", "huge number"},
      {R"({"a":)" + entry(R"("F32")", "[18446744073709551615]", "[0,4]") + "}", "beyond 63 bits"},
      {R"({"a":)" + entry(R"("F32")", "[4294967296,4294967296]", "[0,4]") + "}", "beyond 63 bits"},
      {R"({"a":)" + entry(R"("F32")", "[0,9223372036854775807,4]", "[0,0]") + "}", "beyond 63 bits"},
      {R"({"a":)" + entry(R"("F32")", "[[1]]", "[0,4]") + "}", "a list where none belongs"},
      {R"({"a":)" + entry(R"("F32")", "[null]", "[0,4]") + "}", "null where none belongs"},
      {R"({"a":)" + entry(R"("F32")", "[true]", "[0,4]") + "}", "true or false"},
      {R"({"a":)" + entry(R"("F32")", R"(["1"])", "[0,4]") + "}", "a text where none belongs"},
      {R"({"a":)" + entry(R"("F32")", "{}", "[0,4]") + "}", "an object where none belongs"},
      {R"({"a":)" + entry(R"("F32")", "[1]", "[0]") + "}", "not a pair"},
      {R"({"a":)" + entry(R"("F32")", "[1]", "[0,4,4]") + "}", "not a pair"},
      {R"({"a":)" + entry(R"("F32")", "[1]", "[4,0]") + "}", "from byte 0"},
      {R"({"a":)" + entry(R"("F32")", "[1]", "[0,8]") + "}",
       "expected 4 bytes for its shape, found data_offsets of 8"},
      {R"({"a":)" + entry(R"("F32")", "[2]", "[0,4]") + "}", "expected 8 bytes"},
      {R"({"a":)" + entry(R"("U8")", "[1]", "[1,2]") + "}", "from byte 0"},
      {R"({"a":)" + entry(R"("U8")", "[1]", "[0,1]") + R"(,"b":)" + entry(R"("U8")", "[2]", "[2,4]") + "}",
       "from byte 1"},
      {R"({"a":)" + entry(R"("U8")", "[3]", "[0,3]") + R"(,"b":)" + entry(R"("U8")", "[2]", "[2,4]") + "}",
       "from byte 3"},
      {R"({"a":)" + good + R"(,"b":)" + good + "}", "from byte 4"},
      {R"({"a":)" + entry(R"("U8")", "[3]", "[0,3]") + "}",
       "expected 3 bytes of data behind the header, found 4"},
      {R"({"a":)" + entry(R"("U8")", "[5]", "[0,5]") + "}",
       "expected 5 bytes of data behind the header, found 4"},
      {R"({"a":1})", "a number where none belongs"},
      {R"({"a":"x"})", "a text where none belongs"},
      {R"({"__metadata__":{"x":1}})", "a number where none belongs"},
      {R"({"__metadata__":{"x":{}}})", "an object where none belongs"},
      {R"({"__metadata__":[]})", "a list where none belongs"},
      {R"({"__metadata__":{"alias:b":"c"},"a":)" + good + "}", "an alias of no tensor"},
      {R"({"__metadata__":{"alias:a":"a"},"a":)" + good + "}", "an alias of"},
      {"{\"a\xff\":" + good + "}", "expected JSON"},
      {std::string("{\"a\0\":", 6) + good + "}", "expected JSON"},
  };
  for (const auto& [json, expected] : cases)
    EXPECT_THAT(refusal(file_of(json, four)), HasSubstr(expected)) << json;
  // Deep nesting costs no stack.
  refusal(file_of("{\"a\":" + std::string(1'000'000, '['), four));
  refusal(file_of(std::string(1'000'000, '{'), four));
}

// A file that never touches a disk, with a path of its own.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("gradstep", MFD_CLOEXEC)) {}
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string write(const std::string& bytes) const {
    EXPECT_EQ(::ftruncate(fd_, 0), 0);
    EXPECT_EQ(::pwrite(fd_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  const int fd_;
};

// Random damage: read as something, or refused as a CheckpointError; never anything else.
TEST(Safetensors, SurvivesRandomDamage) {
  const MemoryFile file;
  const std::string whole =
      written({{"a", torch::ones({2, 3})}, {"bias", torch::ones({4}, at::kLong)}, {"e", torch::zeros({0})}},
              {{"k", "v"}});
  const std::string alphabet = "{}[]\",:0123456789-.eEx \\\0\xff";
  const unsigned seed = testing::fuzz_seed();
  SCOPED_TRACE(testing::fuzz_trace(seed));
  std::mt19937 random(seed);
  const auto pick = [&](size_t size) { return random() % size; };
  int num_refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = whole;
    for (size_t changes = 1 + pick(4); changes > 0 && !bytes.empty(); --changes) {
      const size_t place = pick(round % 2 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 16));
      switch (pick(5)) {
        case 0:
          bytes[place] = static_cast<char>(random());
          break;
        case 1:
          bytes[place] = alphabet[pick(alphabet.size())];
          break;
        case 2:
          bytes.erase(place, 1 + pick(8));
          break;
        case 3:
          bytes.insert(place, whole.substr(pick(whole.size()), pick(40)));
          break;
        default:
          bytes[place] = static_cast<char>(bytes[place] ^ (1 << pick(8)));
      }
    }
    try {
      (void)read_safetensors(file.write(bytes));
    } catch (const CheckpointError&) {
      ++num_refused;
    }
  }
  EXPECT_GT(num_refused, 2000);
}

// The C++ half of test_safetensors_python.py: copies in.safetensors, which Python wrote, to out.safetensors.
TEST(SafetensorsInterop, CopiesPythonsFile) {
  const char* const folder = std::getenv("GRADSTEP_INTEROP_DIR");
  if (folder == nullptr) GTEST_SKIP() << "run by test_safetensors_python.py";
  const SafetensorsFile file = read_safetensors(std::string(folder) + "/in.safetensors");
  write_safetensors(posix_file_system(), std::string(folder) + "/out.safetensors", file.tensors,
                    file.metadata);
}

}  // namespace
}  // namespace gradstep
