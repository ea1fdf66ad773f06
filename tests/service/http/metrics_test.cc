#include "server/service/http/metrics.h"

#include <string>

#include "tests/support/catch.h"

namespace penstock {
namespace {

// A pipeline of two workers, one consumer and one stage, which took a quarter of their time.
v1::PipelineStats OfTenSeconds() {
  v1::PipelineStats stats;
  stats.set_name("p");
  stats.set_state(v1::PIPELINE_STATE_RUNNING);
  stats.set_workers(2);
  stats.set_slot_wait_ns(5'000'000'000);
  stats.add_stages()->set_busy_ns(5'000'000'000);
  stats.add_consumers()->set_group("default");
  return stats;
}

TEST_CASE("metrics stand by family, with labels escaped") {
  v1::PipelineStats stats = OfTenSeconds();
  stats.mutable_stages(0)->set_name("a \"b\"\\\n");
  stats.mutable_consumers(0)->set_lag(3);
  v1::ConsumerStats* sent_away = stats.add_consumers();
  *sent_away = stats.consumers(0);
  sent_away->set_lag(1000);
  sent_away->set_detached(true);
  v1::ConsumerStats* gone = stats.add_consumers();
  *gone = stats.consumers(0);
  gone->set_lag(2000);
  gone->set_left(true);
  // A counter begins at 0 with its stream, whatever step that begins at.
  stats.set_steps(5100);
  stats.set_made_steps(100);
  v1::PipelineStats other = stats;
  other.set_name("q");
  other.mutable_oldest_read()->set_seconds(12.5);
  other.mutable_oldest_write()->set_seconds(3.5);
  other.mutable_oldest_work()->set_seconds(1.5);
  other.set_tasks_away(5);
  other.set_work_bytes(1000);
  other.set_max_work_bytes(4000);
  other.mutable_stages(0)->set_away_ns(2'500'000'000);
  v1::RemoteStats* remote = other.mutable_remote();
  remote->set_bytes(8000);
  remote->set_requests(12);
  remote->set_retries(2);
  remote->set_hedges(1);
  remote->set_hits(30);
  remote->set_misses(4);
  remote->set_cached_bytes(500);
  remote->set_waiting(3);
  remote->set_under_way(9);
  remote->set_first_byte_ms(62.5);
  v1::PythonWorkers* python = other.mutable_stages(0)->mutable_python_workers();
  python->set_workers(3);
  python->set_busy_ns(4'500'000'000);
  python->set_oldest_row_seconds(1.25);
  python->set_started(9);
  python->set_deaths(6);
  python->set_memory_bytes(77);
  v1::HelperStats* helper = other.add_helpers();
  helper->set_address("10.0.0.7:9466");
  helper->set_state("ready");
  helper->set_steps(40);
  helper->set_bytes(4000);
  helper->set_given_back(2);
  helper->set_left_out(1);
  const std::string text = MetricsText({stats, other}, 4, {.no_right = 3},
                                       {.files = 2, .bytes = 900}, {1.5, 4096, 7, 1e9});
  const auto has = [&text](const std::string& line) {
    return text.find("\n" + line + "\n") != text.npos;
  };
  CHECK(has("penstock_pipelines 2"));
  CHECK(has("penstock_pipelines_returning 4"));
  CHECK(has("penstock_refusals_total{reason=\"no right\"} 3"));
  CHECK(has("penstock_pipeline_steps_total{pipeline=\"p\"} 100"));
  CHECK(has("penstock_pipeline_slot_wait_seconds_total{pipeline=\"p\"} 5"));
  CHECK(has("penstock_pipeline_oldest_read_seconds{pipeline=\"p\"} 0"));
  CHECK(has("penstock_pipeline_oldest_read_seconds{pipeline=\"q\"} 12.5"));
  CHECK(has("penstock_pipeline_oldest_write_seconds{pipeline=\"p\"} 0"));
  CHECK(has("penstock_pipeline_oldest_write_seconds{pipeline=\"q\"} 3.5"));
  CHECK(has("penstock_pipeline_oldest_work_seconds{pipeline=\"p\"} 0"));
  CHECK(has("penstock_pipeline_oldest_work_seconds{pipeline=\"q\"} 1.5"));
  CHECK(has("penstock_pipeline_tasks_away{pipeline=\"q\"} 5"));
  CHECK(has("penstock_pipeline_fetched_bytes_total{pipeline=\"q\"} 8000"));
  CHECK(has("penstock_pipeline_fetch_requests_total{pipeline=\"q\"} 12"));
  CHECK(has("penstock_pipeline_fetch_retries_total{pipeline=\"q\"} 2"));
  CHECK(has("penstock_pipeline_fetch_hedges_total{pipeline=\"q\"} 1"));
  CHECK(has("penstock_pipeline_fetch_hits_total{pipeline=\"q\"} 30"));
  CHECK(has("penstock_pipeline_fetch_misses_total{pipeline=\"q\"} 4"));
  CHECK(has("penstock_pipeline_fetch_cached_bytes_total{pipeline=\"q\"} 500"));
  CHECK(has("penstock_pipeline_fetch_waiting{pipeline=\"q\"} 3"));
  CHECK(has("penstock_fetch_under_way 9"));
  CHECK(has("penstock_fetch_first_byte_seconds 0.0625"));
  CHECK(!has("penstock_pipeline_fetch_requests_total{pipeline=\"p\"} 0"));
  CHECK(has("penstock_pipeline_work_bytes{pipeline=\"q\"} 1000"));
  CHECK(has("penstock_pipeline_work_limit_bytes{pipeline=\"q\"} 4000"));
  CHECK(has("penstock_stage_away_seconds_total{pipeline=\"q\",stage=\"a \\\"b\\\"\\\\\\n\"} 2.5"));
  const std::string stage = "{pipeline=\"q\",stage=\"a \\\"b\\\"\\\\\\n\"} ";
  CHECK(has("penstock_stage_python_workers" + stage + "3"));
  CHECK(has("penstock_stage_python_busy_seconds_total" + stage + "4.5"));
  CHECK(has("penstock_stage_python_oldest_row_seconds" + stage + "1.25"));
  CHECK(has("penstock_stage_python_started_total" + stage + "9"));
  CHECK(has("penstock_stage_python_deaths_total" + stage + "6"));
  CHECK(has("penstock_stage_python_bytes" + stage + "77"));
  CHECK(text.find("penstock_stage_python_workers{pipeline=\"p\"") == text.npos);
  CHECK(has("penstock_pipeline_state{pipeline=\"q\",state=\"running\"} 1"));
  CHECK(has("penstock_pipeline_state{pipeline=\"q\",state=\"failed\"} 0"));
  CHECK(has("penstock_stage_busy_seconds_total{pipeline=\"p\",stage=\"a \\\"b\\\"\\\\\\n\"} 5"));
  CHECK(has("penstock_group_lag_steps{pipeline=\"p\",group=\"default\"} 3"));
  CHECK(has("penstock_group_consumers{pipeline=\"p\",group=\"default\"} 1"));
  const std::string helped = "{pipeline=\"q\",helper=\"10.0.0.7:9466\"} ";
  CHECK(has("penstock_helper_ready" + helped + "1"));
  CHECK(has("penstock_helper_steps_total" + helped + "40"));
  CHECK(has("penstock_helper_bytes_total" + helped + "4000"));
  CHECK(has("penstock_helper_given_back_total" + helped + "2"));
  CHECK(has("penstock_helper_left_out_total" + helped + "1"));
  CHECK(has("penstock_mapped_files 2"));
  CHECK(has("penstock_mapped_bytes 900"));
  CHECK(has("process_cpu_seconds_total 1.5"));
  // Each family once, its series together.
  const size_t type = text.find("# TYPE penstock_pipeline_rows_total counter\n");
  REQUIRE(type != text.npos);
  CHECK(text.find("# TYPE penstock_pipeline_rows_total", type + 1) == text.npos);
}

}  // namespace
}  // namespace penstock
