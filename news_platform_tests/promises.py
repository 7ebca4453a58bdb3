"""What the platform promises under faults, and the tests that prove each promise.

`make soak` runs all of them; `docs/soak.md` begins with this table.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise and its tests; `gap` says what of it no test shows."""

    area: str
    text: str
    tests: tuple[str, ...]
    gap: str = ""


def _in(module: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{module}::{name}" for name in names)


PROMISES = (
    Promise(
        "Hostile input",
        "20,000 mutated feeds, articles, robots files, sitemaps, snapshots, WARC records and HTTP "
        "answers change no good neighbour, on SQLite and PostgreSQL; memory grows by 10 % at most",
        _in(
            "rss/test_mutated_web.py",
            "test_five_thousand_mutated_feeds_hurt_no_other",
            "test_five_thousand_mutated_articles_hurt_no_other",
        )
        + _in(
            "domain_metadata/test_mutated_sites.py",
            "test_four_thousand_mutated_robots_files_and_sitemaps_hurt_no_other",
        )
        + _in(
            "source_records/test_mutated_snapshots.py",
            "test_three_thousand_mutated_snapshots_hurt_no_other",
        )
        + _in("ccnews/test_mutated_warcs.py", "test_three_thousand_mutated_records_hurt_no_other"),
    ),
    Promise(
        "Hostile input",
        "an exception at any step of a unit costs that unit alone",
        _in(
            "rss/test_every_step.py",
            "test_an_exception_at_every_step_of_a_unit_leaves_its_neighbours_as_they_are",
        )
        + _in(
            "domain_metadata/test_every_step.py",
            "test_an_exception_at_every_step_of_a_domain_leaves_the_others",
        ),
    ),
    Promise(
        "Hostile input",
        "2,000 generated command lines: 0 only for success, no traceback, no hang, nothing written "
        "outside the root",
        _in(
            "cli/test_fuzz.py",
            "test_no_line_of_two_thousand_crashes_hangs_or_writes_elsewhere",
            "test_lines_end_alike_as_processes_of_their_own",
        ),
    ),
    Promise(
        "Hostile input",
        "a secret of any setting is never seen in output, logs, GraphQL, ps, /proc or crash dumps",
        _in(
            "test_planted_secrets.py",
            "test_no_command_shows_any_secret",
            "test_no_failed_run_records_a_secret",
            "test_a_crash_leaves_no_core_file",
        )
        + _in("servers/test_planted_secrets_live.py", "test_a_failed_run_shows_no_secret_anywhere")
        + _in(
            "cluster/test_live.py",
            "test_a_killed_worker_loses_no_partition_and_shows_its_runs_and_no_secret",
        ),
    ),
    Promise(
        "Automation",
        "a year with outages, kills, late and broken WARCs and a backfill ends as an undisturbed "
        "one, with few runs, no long wait, and an explanation for every run",
        _in("year/test_year.py", "test_a_year_of_trouble_ends_as_if_there_had_been_none"),
    ),
    Promise(
        "Newsroom",
        "2,000 feeds over 30 days: every item is stored, skipped with a reason or named as "
        "possibly missed; none doubled; each alert raised and healed once",
        _in("rss/test_newsroom_month.py", "test_thirty_days_of_two_thousand_feeds"),
    ),
    Promise(
        "Articles",
        "the same bytes give the same article everywhere",
        _in(
            "articles/test_same_everywhere.py",
            "test_all_pages_give_the_same_articles_in_other_surroundings",
        ),
        "other Pythons and processors",
    ),
    Promise(
        "Articles",
        "hostile pages have an outcome within the deadline; 20,000 mutated real pages never raise",
        _in(
            "articles/test_hostile_pages.py",
            "test_a_hostile_page_gives_an_article_in_bounded_time",
            "test_a_page_of_thirty_megabytes_gives_an_article",
            "test_ten_thousand_comments_are_not_the_article",
            "test_twenty_thousand_mutated_real_pages_never_raise",
        ),
    ),
    Promise(
        "Source records",
        "the same snapshot gives the same records and ids; a change of rules changes exactly the "
        "institutions it touches; every dropped block names its rule and numbers",
        _in(
            "source_records/test_same_everywhere.py",
            "test_all_pages_give_the_same_records_in_two_processes",
        )
        + _in(
            "source_records/test_pipeline.py",
            "test_a_change_of_rules_changes_exactly_the_institutions_it_touches",
        )
        + _in(
            "source_records/test_adversaries.py",
            "test_every_dropped_block_names_its_rule_and_numbers",
        ),
    ),
    Promise(
        "Corpus",
        "kill -9 anywhere in build, optimize, vacuum and export leaves the old or the new version, "
        "in a folder and in a bucket",
        _in(
            "corpus/test_kills.py",
            "test_many_kills_leave_the_old_or_the_new_version",
            "test_kills_on_an_object_store_leave_the_old_or_the_new_version",
        ),
    ),
    Promise(
        "Corpus",
        "two builders of one day, an older reader beside a vacuum, a day extracted again, and S3 "
        "as a folder",
        _in(
            "storage/test_delta.py",
            "test_two_builders_of_one_day_end_in_the_rows_of_one",
            "test_an_older_reader_goes_on_beside_a_vacuum_within_its_grace",
        )
        + _in(
            "corpus/test_pipeline.py",
            "test_a_day_extracted_again_replaces_exactly_that_day",
            "test_a_root_on_s3_behaves_as_a_local_one",
        ),
    ),
    Promise(
        "Corpus",
        "a bad selection is one clear line, and nothing is overwritten",
        _in(
            "corpus/test_cli.py",
            "test_a_bad_selection_is_one_line_and_writes_nothing",
            "test_a_folder_of_somebody_else_is_not_overwritten",
        ),
    ),
    Promise(
        "Find",
        "500 generated queries over 10,000 articles in 12 languages equal a scan",
        _in("search/test_index.py", "test_500_queries_over_10000_articles_equal_a_scan"),
    ),
    Promise(
        "Find",
        "an index build killed anywhere leaves every day whole",
        _in("search/test_months.py", "test_a_builder_killed_60_times_leaves_every_day_whole"),
    ),
    Promise(
        "Find",
        "an index deleted under the server, query bombs, and load while days are replaced: clear "
        "errors within 2 s, never a 5xx",
        _in(
            "server/test_changing_root.py",
            "test_an_index_deleted_under_the_server_is_told_and_comes_back",
            "test_a_query_bomb_is_refused_within_two_seconds",
            "test_a_server_under_load_never_fails_while_days_are_replaced",
        ),
    ),
    Promise(
        "Takedown",
        "500 requests with kills, readers and rebuilds: nothing is found, nothing comes back, and "
        "the rest equals a root that never collected it, in a folder and in a bucket",
        _in(
            "takedowns/test_everything.py",
            "test_500_requests_in_a_folder",
            "test_500_requests_in_a_bucket",
        ),
    ),
    Promise(
        "Survey",
        "every signal is read as its source says, on more than 200 vectors",
        _in(
            "domain_metadata/signals/test_vectors.py",
            "test_a_robots_txt_is_read_as_its_sources_say",
            "test_a_header_speaks_about_its_page",
            "test_a_meta_element_speaks_about_its_page",
            "test_a_licence_is_read_as_rsl_says",
            "test_a_tdmrep_file_is_read_in_its_order",
            "test_an_ai_txt_is_read_by_its_shape",
            "test_a_trust_txt_states_whether_training_is_allowed",
            "test_a_dictionary_follows_rfc_9651",
        ),
    ),
    Promise(
        "Survey",
        "hostile files cost themselves; a killed survey or a jumping clock asks nobody twice and "
        "forgets nobody; who refuses is asked for nothing but robots.txt",
        _in(
            "domain_metadata/test_hostile_web.py",
            "test_every_hostile_host_gets_its_outcome_and_a_thousand_good_ones_finish",
            "test_a_survey_killed_twenty_times_leaves_one_complete_result_a_domain",
        )
        + _in(
            "domain_metadata/test_resurvey_plan.py",
            "test_whatever_is_killed_and_however_the_clock_jumps_nobody_is_asked_twice_or_forgotten",
        )
        + _in(
            "domain_metadata/test_consumer.py",
            "test_a_clock_that_jumps_during_a_survey_asks_nobody_twice",
        )
        + _in(
            "domain_metadata/test_survey.py",
            "test_a_site_that_refuses_us_is_asked_for_robots_txt_only",
        ),
    ),
    Promise(
        "Operate",
        "a worker, the daemon, PostgreSQL, Redis and the object store fail in turn: every dataset "
        "as on one machine",
        _in(
            "cluster/test_real_graph.py",
            "test_the_graph_is_the_same_when_every_part_has_failed_once",
        )
        + _in("cluster/test_live.py", "test_twenty_partitions_complete_when_a_part_fails"),
    ),
    Promise(
        "Operate",
        "the same on the composed containers, during a backfill of ten days and with an image "
        "upgrade in the middle",
        _in(
            "cluster/test_containers.py",
            "test_ten_days_are_the_same_when_every_container_was_killed_and_upgraded",
        ),
        "the official base images",
    ),
    Promise(
        "Operate",
        "a backup taken under load restores elsewhere to the same rows",
        _in(
            "cluster/test_drill.py",
            "test_a_backup_under_load_restores_elsewhere_to_the_same_rows",
        )
        + _in(
            "storage/sql/test_ledger_copy.py",
            "test_a_backup_under_load_holds_one_consistent_moment",
        ),
    ),
    Promise(
        "Operate",
        "each run as a Kubernetes Job: built, failed, terminated, killed, refused",
        _in(
            "cluster/test_kubernetes.py",
            "test_a_day_of_the_crawl_is_built_by_a_job",
            "test_a_failing_asset_fails_the_run_with_its_error",
            "test_a_job_that_cannot_start_fails_the_run_with_the_last_lines_of_its_log",
            "test_a_terminated_run_ends_its_job",
            "test_a_killed_job_is_noticed_and_its_run_started_again",
            "test_a_wrong_token_fails_the_run_and_says_so",
        ),
        "a real kubelet",
    ),
)
