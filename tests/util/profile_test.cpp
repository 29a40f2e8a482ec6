#include "tercel/util/profile.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tercel/util/error.h"
#include "tercel/util/json_impl.h"

namespace tercel {
namespace {

/** Sleeps until the profiler's clock has advanced, since sleeping uses another clock on some machines. */
void wait(int64_t microseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  while (std::chrono::steady_clock::now() < end) std::this_thread::sleep_until(end);
}

TEST(Profile, RangesNest) {
  EXPECT_FALSE(profiling());
  start_profile();
  EXPECT_TRUE(profiling());
  {
    const ProfileRange outer("outer", RangeKind::Annotation);
    for (int i = 0; i < 2; ++i) {
      const ProfileRange inner(std::string("inner").c_str(), RangeKind::Op);  // a name that is freed before the end
      wait(200);
    }
    wait(100);
  }
  const std::vector<ProfileEvent> events = stop_profile();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_STREQ(events[0].name, "outer");
  EXPECT_STREQ(events[1].name, "inner");
  EXPECT_EQ(events[1].name, events[2].name);  // one address
  EXPECT_EQ(events[0].depth, 0);
  EXPECT_EQ(events[1].depth, 1);
  EXPECT_EQ(events[2].depth, 1);
  EXPECT_EQ(events[0].kind, RangeKind::Annotation);
  const auto length = [&](int i) { return events[i].end - events[i].begin; };
  EXPECT_GE(length(1), 200'000);
  EXPECT_GE(events[0].self, 100'000);
  EXPECT_EQ(events[0].self, length(0) - length(1) - length(2));
  EXPECT_EQ(events[1].self, length(1));
  EXPECT_GE(events[1].begin, events[0].begin);
  EXPECT_GE(events[2].begin, events[1].end);
  EXPECT_LE(events[2].end, events[0].end);
}

TEST(Profile, RowsAreSortedBySelfTime) {
  const char* const inner = "inner";
  const std::vector<ProfileEvent> events = {{"outer", RangeKind::Annotation, 0, 0, 0, 700, 200},
                                            {inner, RangeKind::Op, 0, 1, 100, 300, 200},
                                            {inner, RangeKind::Op, 0, 1, 300, 600, 300}};
  const std::vector<ProfileRow> rows = profile_rows(events);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_STREQ(rows[0].name, "inner");
  EXPECT_EQ(rows[0].calls, 2);
  EXPECT_EQ(rows[0].self, 500);
  EXPECT_EQ(rows[1].total, 700);
  const std::string table = profile_table(events, 1);
  EXPECT_EQ(table.find("name"), 0U);
  EXPECT_NE(table.find("\ninner "), std::string::npos);
  EXPECT_EQ(table.find("outer"), std::string::npos);
}

TEST(Profile, OnlyWholeRangesOfTheProfileCount) {
  std::vector<ProfileEvent> first, second;
  {
    const ProfileRange before("before", RangeKind::Op);
    start_profile();
  }
  { const ProfileRange whole("whole", RangeKind::Op); }
  {
    const ProfileRange after("after", RangeKind::Op);
    first = stop_profile();
    start_profile();
  }
  second = stop_profile();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_STREQ(first[0].name, "whole");
  EXPECT_TRUE(second.empty());
}

TEST(Profile, AnOpInsideOneOfItsNameIsTheSame) {
  start_profile();
  {
    const ProfileRange outer("mul", RangeKind::Op);
    const ProfileRange same("mul", RangeKind::Op);
    const ProfileRange other("copy", RangeKind::Op);
    const ProfileRange again("mul", RangeKind::Op);  // another one: it is inside the copy
  }
  {
    const ProfileRange node("mul", RangeKind::Backward);
    const ProfileRange op("mul", RangeKind::Op);
  }
  std::string found;
  for (const ProfileEvent& e : stop_profile()) found += std::to_string(e.depth) + e.name + " ";
  EXPECT_EQ(found, "0mul 1copy 2mul 0mul 1mul ");
}

TEST(Profile, IsPausedAndContinued) {
  EXPECT_THROW(pause_profile(true), RuntimeError);
  start_profile();
  {
    const ProfileRange outer("outer", RangeKind::Op);
    std::optional<ProfileRange> ends_inside(std::in_place, "ends inside", RangeKind::Op);
    pause_profile(true);
    pause_profile(true);
    EXPECT_FALSE(profiling());
    EXPECT_THROW(start_profile(), RuntimeError);
    ends_inside.reset();
    const ProfileRange begins_inside("begins inside", RangeKind::Op);
    pause_profile(false);
    const ProfileRange after("after", RangeKind::Op);
  }
  pause_profile(true);
  std::string found;
  for (const ProfileEvent& e : stop_profile()) found += std::to_string(e.depth) + e.name + " ";
  EXPECT_EQ(found, "0outer 1after ");
  start_profile();
  EXPECT_TRUE(profiling() && stop_profile().empty());
}

TEST(Profile, ThereIsOneAtATime) {
  EXPECT_THROW(stop_profile(), RuntimeError);
  start_profile();
  EXPECT_THROW(start_profile(), RuntimeError);
  EXPECT_TRUE(stop_profile().empty());
  EXPECT_THROW(start_profile(0), ValueError);
}

TEST(Profile, HoldsAsManyEventsAsAsked) {
  start_profile(3);
  for (int i = 0; i < 10; ++i) const ProfileRange range("range", RangeKind::Op);
  EXPECT_EQ(stop_profile().size(), 3U);
}

TEST(Profile, TraceIsJson) {
  start_profile();
  { const ProfileRange range("a \"name\"\n\xff", RangeKind::Backward); }
  const std::vector<ProfileEvent> events = stop_profile();
  const Json trace = parse_json(chrome_trace(events), "trace", JsonErrors::Data);
  const Json& list = trace.at("traceEvents");
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].at("ph"), "M");
  EXPECT_EQ(list[1].at("ph"), "X");
  EXPECT_EQ(list[1].at("cat"), "backward");
  EXPECT_EQ(list[1].at("name").get<std::string>().substr(0, 9), "a \"name\"\n");
  EXPECT_NEAR(list[1].at("dur").get<double>(), static_cast<double>(events[0].end - events[0].begin) / 1e3, 1e-6);
  EXPECT_EQ(parse_json(chrome_trace({}), "trace", JsonErrors::Data).at("traceEvents").size(), 0U);
}

TEST(ProfileThreads, AreKeptApart) {
  std::atomic<bool> stop = false;
  std::atomic<int> begun = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      const std::string name = "thread " + std::to_string(i);
      for (int n = 0; !stop; ++n) {
        const ProfileRange outer(name.c_str(), RangeKind::Op);
        const ProfileRange inner("inner", RangeKind::Op);
        if (n == 10) ++begun;
      }
    });
  while (begun < 3) std::this_thread::yield();
  for (int round = 0; round < 20; ++round) {
    start_profile(1000);
    wait(300);
    const std::vector<ProfileEvent> events = stop_profile();
    std::vector<const char*> owners(3, nullptr);
    for (const ProfileEvent& e : events) {
      if (e.depth == 1) continue;
      ASSERT_EQ(e.depth, 0);
      if (std::string_view(e.name) == "inner") continue;  // its outer range began before the profile
      const char*& owner = owners.at(static_cast<size_t>(e.thread));
      if (!owner) owner = e.name;
      ASSERT_STREQ(owner, e.name);
    }
  }
  stop = true;
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace tercel
