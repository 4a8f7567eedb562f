// A complete training program for a model and data of your own: it learns to predict the next byte of a text.
// Try: 03_own_program train --file README.md --warmup-steps 0 --epochs 20 -o runs/text, and train --help.
#include <torch/torch.h>

#include <fstream>
#include <iterator>

#include "gradstep/app/app.h"
#include "gradstep/base/error.h"
#include "gradstep/model/tasks.h"

// Your module, as you would write it without gradstep.
struct ByteModelImpl : torch::nn::Module {
  explicit ByteModelImpl(int64_t width)
      : embedding(register_module("embedding", torch::nn::Embedding(256, width))),
        gru(register_module("gru", torch::nn::GRU(torch::nn::GRUOptions(width, width).batch_first(true)))),
        scores(register_module("scores", torch::nn::Linear(width, 256))) {}
  at::Tensor forward(const at::Tensor& bytes) {  // (n, seq) -> (n, seq, 256)
    return scores(std::get<0>(gru(embedding(bytes))));
  }
  torch::nn::Embedding embedding;
  torch::nn::GRU gru;
  torch::nn::Linear scores;
};
TORCH_MODULE(ByteModel);

struct ByteRecipe : gradstep::Recipe {
  std::string file = "README.md";
  int64_t seq = 64, width = 64;
  // Each option becomes a flag, a variable GRADSTEP_*, a key of the config file and a line of --help.
  void flags(gradstep::Flags& flags) override {
    flags.add("file", file, "Text to learn; its last tenth is for evaluation.").path().metavar("FILE");
    flags.add("seq", seq, "Bytes in a sample.").range(1, 4096);
    flags.add("width", width, "Width of the model.").range(1, 4096);
  }
  gradstep::DatasetPair data() override {
    std::ifstream in(file, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const int64_t n = (static_cast<int64_t>(text.size()) - 1) / seq;
    if (n < 2) throw gradstep::DataError("--file " + file + ": too short or not there; give a text");
    const at::Tensor bytes =
        torch::from_blob(const_cast<char*>(text.data()), {n * seq + 1}, torch::kByte).to(torch::kLong);
    const at::Tensor inputs = bytes.slice(0, 0, n * seq).view({n, seq});
    const at::Tensor targets = bytes.slice(0, 1, n * seq + 1).view({n, seq}).clone();
    const int64_t split = n - std::max<int64_t>(n / 10, 1);
    const gradstep::DatasetSpec spec{
        .name = "bytes", .input_shape = {seq}, .kind = gradstep::SampleKind::kTokens, .vocab_size = 256};
    const auto part = [&](int64_t begin, int64_t end) {
      return std::make_shared<gradstep::TensorDataset>(spec, inputs.slice(0, begin, end).contiguous(),
                                                       targets.slice(0, begin, end).contiguous());
    };
    return {part(0, split), part(split, n)};
  }

  gradstep::Task task(const gradstep::DatasetSpec&) override {
    return gradstep::language_task(ByteModel(width));
  }
};

int main(int argc, char** argv) { return gradstep::app_main<ByteRecipe>(argc, argv, "bytes"); }
