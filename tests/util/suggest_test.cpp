#include "tercel/util/suggest.h"

#include <gtest/gtest.h>

namespace tercel {
namespace {

TEST(Suggest, FindsWhatWasMeant) {
  const Span<std::string_view>& known = {};
  EXPECT_EQ(nearest_name("x", known), "");
  const std::string_view names[] = {"num_layers", "projection_dim", "lr", "InnerProduct", "sum", "mean"};
  const auto nearest = [&](std::string_view word) { return nearest_name(word, Span<std::string_view>(names, 6)); };
  EXPECT_EQ(nearest("num_layer"), "num_layers");
  EXPECT_EQ(nearest("num-layers"), "num_layers");
  EXPECT_EQ(nearest("nmu_layers"), "num_layers") << "swapped letters";
  EXPECT_EQ(nearest("innerproduct"), "InnerProduct");
  EXPECT_EQ(nearest("LR"), "lr");
  EXPECT_EQ(nearest("lrr"), "lr");
  EXPECT_EQ(nearest("xy"), "") << "nothing is near";
  EXPECT_EQ(nearest("dropout_rate"), "");
  EXPECT_EQ(nearest(""), "");
  EXPECT_EQ(nearest(std::string(100'000, 'n')), "");
}

TEST(Suggest, ListsWhatIsKnown) {
  const std::string_view names[] = {"sum", "mean"};
  const Span<std::string_view> known(names, 2);
  EXPECT_EQ(known_names("man", known), "; did you mean 'mean'? known: sum, mean");
  EXPECT_EQ(known_names("concat", known), "; known: sum, mean");
  EXPECT_EQ(known_names("concat", {}), "; there are none");
}

}  // namespace
}  // namespace tercel
