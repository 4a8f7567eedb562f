// The known data sets' addresses, sizes and MD5 sums, as their publishers and torchvision give them.
// no torch
#include "download/fetch_list.h"

namespace gradstep {
namespace {

constexpr uint64_t kCifarBatchBytes = 10000 * 3073;
const char* const kCifarFolder = "cifar-10-batches-bin/";

std::vector<FetchMember> cifar_members() {
  std::vector<FetchMember> members;
  for (const char* const name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                 "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"}) {
    members.push_back({std::string(kCifarFolder) + name, name, kCifarBatchBytes});
  }
  return members;
}

}  // namespace

const std::vector<FetchList>& known_fetch_lists() {
  static const std::vector<FetchList> lists = {
      {"fashion-mnist",
       "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
       {{"train-images-idx3-ubyte.gz", 26421880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
        {"train-labels-idx1-ubyte.gz", 29515, "25c81989df183df01b3e8a0aad5dffbe"},
        {"t10k-images-idx3-ubyte.gz", 4422102, "bef4ecab320f06d8554ea6380940ec79"},
        {"t10k-labels-idx1-ubyte.gz", 5148, "bb300cfdad3c16e7a12a480ee83cd310"}},
       {}},
      {"mnist",
       "https://ossci-datasets.s3.amazonaws.com/mnist/",
       {{"train-images-idx3-ubyte.gz", 9912422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"},
        {"train-labels-idx1-ubyte.gz", 28881, "d53e105ee54ea40749a09fcbcd1e9432"},
        {"t10k-images-idx3-ubyte.gz", 1648877, "9fb629c4189551a2d022fa330f9573f3"},
        {"t10k-labels-idx1-ubyte.gz", 4542, "ec29112dd5afa0611ce80d1b7f02629c"}},
       {}},
      {"cifar10",
       "https://www.cs.toronto.edu/~kriz/",
       {{"cifar-10-binary.tar.gz", 170052171, "c32a1d4ab5d03f1284b67883e8d87530"}},
       cifar_members()},
  };
  return lists;
}

}  // namespace gradstep
