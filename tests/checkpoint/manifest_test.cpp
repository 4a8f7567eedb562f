// The manifest: its text is frozen, and what is not sealed, plain or in range is refused.
#include "checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "io/hash.h"
#include "support/fuzz_seed.h"
#include "support/golden.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::vector<ManifestFile> kFiles = {{"model.safetensors", 9007199254740993, "0123456789abcdef"},
                                          {"state.json", 0, "fedcba9876543210"}};

std::string sealed(const std::string& text) {
  return text + "\"xxh3\":\"" + xxh3(text.data(), text.size()) + "\"}\n";
}

std::string refusal(const std::string& text) {
  const std::string message = message_of<CheckpointError>([&] { (void)parse_manifest("m.json", text); });
  EXPECT_THAT(message, AllOf(StartsWith("m.json: "), Not(HasSubstr("\n")))) << text;
  return message;
}

// One file entry that differs from a good one in what is given.
std::string with(const std::string& name, const std::string& bytes = "1",
                 const std::string& hash = "\"0123456789abcdef\"") {
  return sealed("{\"format\":1,\"files\":[{\"name\":" + name + ",\"bytes\":" + bytes + ",\"xxh3\":" + hash +
                "}],\n");
}

TEST(Manifest, IsTheGoldenText) {
  EXPECT_EQ(format_manifest(kFiles), read_source_file("tests/golden/manifest.json"));
  EXPECT_EQ(parse_manifest("m.json", format_manifest(kFiles)), kFiles);
  EXPECT_TRUE(parse_manifest("m.json", format_manifest({})).empty());
  EXPECT_EQ(parse_manifest("m.json", with("\"a\"")).size(), 1U);
}

TEST(Manifest, EveryFlippedByteAndEveryTruncationIsFound) {
  const std::string whole = format_manifest(kFiles);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 1);
    EXPECT_THAT(refusal(bytes), HasSubstr("its own hash is not right"));
    refusal(whole.substr(0, i));
  }
  refusal(whole + "\n");
}

TEST(Manifest, HostileOnesThatAreSealed) {
  for (const char* name : {"\"\"", "\".\"", "\"..\"", "\"../x\"", "\"/etc/passwd\"", "\"a/b\"", "\".hidden\"",
                           "\"manifest.json\"", "\"a\\u0000b\"", "\"a b\"", "\"\xc3\xa9\""}) {
    EXPECT_THAT(refusal(with(name)), HasSubstr("files[0].name: not a plain file name")) << name;
  }
  refusal(with("\"" + std::string(101, 'a') + "\""));
  for (const char* bytes : {"-1", "1.0", "1e3", "9223372036854775808", "18446744073709551616", "\"1\"",
                            "null", "[]", "true", "1e999"}) {
    refusal(with("\"a\"", bytes));
  }
  for (const char* hash :
       {"\"\"", "\"0123456789ABCDEF\"", "\"0123456789abcde\"", "\"0123456789abcdef0\"", "1"}) {
    refusal(with("\"a\"", "1", hash));
  }
  const std::string entry = R"({"name":"a","bytes":1,"xxh3":"0123456789abcdef"})";
  EXPECT_THAT(refusal(sealed(R"({"format":1,"files":[)" + entry + "," + entry + "],\n")),
              HasSubstr("files[1].name: a is listed twice"));
  EXPECT_THAT(refusal(sealed(R"({"format":1,"files":[],"format":1,)")), HasSubstr("given twice"));
  EXPECT_THAT(refusal(sealed(R"({"files":[],)")), HasSubstr("format: is missing"));
  EXPECT_THAT(refusal(sealed(R"({"format":1,)")), HasSubstr("files: is missing"));
  EXPECT_THAT(refusal(sealed(R"({"format":0,"files":[],)")), HasSubstr("format"));
  EXPECT_THAT(refusal(sealed(R"({"format":1,"files":{},)")), HasSubstr("expected a list"));
  EXPECT_THAT(refusal(sealed(R"({"format":1,"files":[1],)")), HasSubstr("files[0]: expected an object"));
  EXPECT_THAT(refusal(sealed("")), HasSubstr("expected JSON"));
  EXPECT_THAT(refusal(sealed("[")), HasSubstr("expected JSON"));
  EXPECT_THAT(refusal(sealed("{\"format\":1,\"files\":" + std::string(500'000, '['))),
              HasSubstr("nested deeper than 8"));
  refusal(sealed("{\"a\":" + std::string(500'000, '{')));
  refusal(sealed("{\"a\xff\":1,"));
}

TEST(Manifest, ANewerFormatIsAnotherErrorThanDamage) {
  EXPECT_THAT(message_of<NewerFormat>(
                  [] { (void)parse_manifest("m.json", sealed(R"({"format":2,"anything":[{}],)")); }),
              AllOf(StartsWith("m.json: "), HasSubstr("use a newer gradstep")));
  EXPECT_THROW((void)parse_manifest("m.json", "{\"format\":2}\n"), CheckpointError);
}

TEST(Manifest, ALongFileIsNotRead) {
  const ScratchDir dir;
  EXPECT_THAT(
      message_of<CheckpointError>([&] { (void)read_manifest(dir.write("m", std::string(1'000'001, ' '))); }),
      HasSubstr("expected at most 1000000 bytes"));
  EXPECT_THROW((void)read_manifest(dir.path()), CheckpointError);
  EXPECT_THROW((void)read_manifest(dir.file("none")), CheckpointError);
}

// Random damage below a right seal: read as something, or a CheckpointError; never anything else.
TEST(Manifest, SurvivesRandomDamage) {
  const std::string whole = format_manifest(kFiles).substr(0, format_manifest(kFiles).size() - 28);
  const std::string alphabet = "{}[]\",:0123456789-.eEx \\\0\xff";
  const unsigned seed = fuzz_seed();
  SCOPED_TRACE(fuzz_trace(seed));
  std::mt19937 random(seed);
  const auto pick = [&](size_t size) { return random() % size; };
  int num_refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = whole;
    for (size_t changes = 1 + pick(3); changes > 0; --changes) {
      const size_t place = pick(text.size());
      if (pick(3) == 0) {
        text.insert(place, whole.substr(pick(whole.size()), pick(30)));
      } else if (pick(2) == 0 && text.size() > 20) {
        text.erase(place, 1 + pick(6));
      } else {
        text[place] = alphabet[pick(alphabet.size())];
      }
    }
    try {
      for (const ManifestFile& file : parse_manifest("m", sealed(text))) {
        ASSERT_EQ(file.name.find_first_of("/\\"), std::string::npos);
      }
    } catch (const CheckpointError& error) {
      ++num_refused;
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(num_refused, 2000);
}

}  // namespace
}  // namespace gradstep::testing
