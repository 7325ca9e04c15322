"""Each requirement of the AuthZEN Authorization API 1.0 on a decision point, and the tests that show it.

The names of the lines are those of the parts of the standard: transport, information model, evaluation, batches, search, pages
and metadata. A line without a test does not pass, and neither does a name that is no test.
"""

from __future__ import annotations

import importlib
import re
from types import ModuleType

import pytest

MODULES = ("transport", "evaluation", "evaluations", "search", "metadata", "own_store", "own_resources", "store_reload", "todo")
TABLE = """
T1 advertised addresses are https: metadata an_address_that_cannot_be_advertised_is_no_setting, no_parameter_is_without_a_value
T2 calls are POST, metadata is GET: transport calls_are_posts; metadata it_is_read_and_not_posted
T3 another content type is 400: transport another_content_type_is_a_bad_request, so_is_none_at_all,
   json_with_a_charset_is_taken
T4 the body is an object: transport a_body_that_is_no_object_is_a_bad_request
T5 an answer is 200 and JSON: transport an_answer_is_json
T6 a missing or mistyped member is 400: transport a_member_of_the_wrong_type_is_a_bad_request,
   a_name_that_is_a_number_is_a_bad_request; evaluation a_missing_member_is_a_bad_request_that_names_it
T7 unknown members and order mean nothing: transport members_that_are_not_known_are_ignored_anywhere,
   the_order_of_members_means_nothing
T8 an error is a sentence and no decision: transport errors_have_a_sentence_and_no_decision, a_deny_is_a_success_and_no_error
T9 without a credential 401: transport without_a_credential_nothing_is_answered
T10 the request id comes back: transport any_request_id_comes_back_as_it_was_sent, a_request_id_comes_back_byte_for_byte,
   a_request_without_an_id_gets_one, an_id_that_is_not_safe_to_show_is_in_no_row_of_the_log
T11 I-JSON: transport hostile_json_is_a_bad_request
T12 limits: transport a_body_over_the_limit_is_refused_unread, over_the_rate_limit_one_is_told_to_come_back,
   hostile_json_is_a_bad_request
T13 the default paths: metadata every_endpoint_that_it_names_answers
T14 clients are authenticated: transport without_a_credential_nothing_is_answered;
   own_store keys_of_platforms_connections_and_bridges_may_not_ask
I1 subject: evaluation a_missing_member_is_a_bad_request_that_names_it, properties_that_are_no_object_are_a_bad_request
I2 resource: evaluation a_missing_member_is_a_bad_request_that_names_it, properties_that_are_no_object_are_a_bad_request
I3 action: evaluation a_missing_member_is_a_bad_request_that_names_it, properties_that_are_no_object_are_a_bad_request
I4 context: evaluation the_context_may_be_left_out_or_null
I5 properties of any kind: evaluation properties_and_context_of_any_kind_that_are_not_declared_break_nothing,
   a_declared_property_of_another_type_is_a_bad_request_that_names_it, a_number_is_a_decimal_where_the_schema_says_so,
   a_null_is_as_good_as_nothing
I6 a decision is a boolean: evaluation the_sample_store_decides_as_its_cases_say
I7 properties decide: evaluation what_is_sent_of_the_subject_decides, what_is_sent_of_the_resource_decides,
   what_is_sent_of_the_action_decides; todo what_somebody_may_do_to_a_todo, every_public_vector_is_answered_as_it_expects
I8 extra properties and context break nothing: evaluation
   properties_and_context_of_any_kind_that_are_not_declared_break_nothing
I9 the same question, the same answer: evaluation the_same_question_has_the_same_answer
E1 subject, action and resource are required: evaluation a_missing_member_is_a_bad_request_that_names_it,
   the_context_may_be_left_out_or_null
E2 each missing member is 400: evaluation a_missing_member_is_a_bad_request_that_names_it
E3 an empty object is 400: evaluation an_empty_object_is_as_good_as_a_missing_one
B1 without items, one question: evaluations without_items_the_body_is_one_question
B2 defaults are replaced whole: evaluations an_empty_item_inherits_everything,
   a_member_of_an_item_takes_the_place_of_the_default_whole, the_context_of_an_item_replaces_that_of_the_body_whole
B3 a default may be missing: evaluations a_default_may_be_missing_when_each_item_brings_its_own
B4 order and length: evaluations answers_come_in_the_order_of_the_items_and_are_as_many
B5 no decision at the top: evaluations there_is_no_decision_beside_the_evaluations
B6 the semantics: evaluations all_are_executed_unless_something_else_is_said, a_semantic_that_is_not_known_is_a_bad_request
B7 deny on first deny: evaluations the_semantic_says_where_the_answer_ends, a_semantic_ends_the_answer_in_any_chunk
B8 permit on first permit: evaluations the_semantic_says_where_the_answer_ends
B9 an item that is wrong by itself: evaluations an_item_that_is_wrong_by_itself_is_a_no_that_says_why,
   an_item_without_a_resource_anywhere_is_a_no_that_says_why, items_that_are_no_list_of_objects_are_a_bad_request
B10 items are independent: evaluations neighbours_with_one_id_and_other_properties_do_not_share_an_answer,
   each_item_is_answered_as_it_is_alone; todo todos_of_one_id_and_different_owners_are_told_apart_in_a_batch;
   store_reload one_answer_comes_of_one_store_however_often_it_is_loaded_meanwhile
B11 the limit is named: evaluations more_questions_than_one_answer_takes_are_refused_whole
S1 subject search: search an_id_of_what_is_searched_for_changes_nothing, a_missing_input_is_a_bad_request
S2 resource search: search an_id_of_what_is_searched_for_changes_nothing, a_missing_input_is_a_bad_request
S3 action search: search an_id_of_what_is_searched_for_changes_nothing, a_missing_input_is_a_bad_request
S4 results of the kind asked for: search the_page_comes_first_and_results_are_of_the_kind_that_was_asked_for
S5 unknown names find nothing: search an_unknown_name_finds_nothing
S6 a missing input is 400: search a_missing_input_is_a_bad_request,
   one_body_can_be_right_for_one_search_and_wrong_for_another
S7 results evaluate to yes, both ways: search what_is_found_is_exactly_what_evaluates_to_yes;
   own_store searches_find_what_evaluates_to_yes; own_resources every_action_finds_the_peers_that_it_evaluates_to_yes_for
S8 groups of groups: search groups_of_groups_count
S9 context: search the_context_counts
S10 properties of the inputs: search what_is_sent_of_the_inputs_counts, an_input_that_is_sent_whole_needs_not_be_stored
S11 the page first: search the_page_comes_first_and_results_are_of_the_kind_that_was_asked_for
P1 pages are supported: search pages_hold_together_what_one_answer_holds
P2 a token until the last page: search pages_hold_together_what_one_answer_holds
P3 token, limit, properties: search a_page_of_the_wrong_kind_is_a_bad_request, a_page_of_nothing_leads_to_the_first_result,
   an_empty_token_is_a_first_page
P4 the same search again: search a_token_with_another_request_is_a_bad_request, the_limit_may_be_said_again_or_not
P5 the count: search the_page_comes_first_and_results_are_of_the_kind_that_was_asked_for
P6 pages hold together: search pages_hold_together_what_one_answer_holds; own_store pages_of_our_own_store_hold_together
P7 a forged or ended token is 400: search a_forged_token_is_a_bad_request, a_token_ends,
   a_token_of_somebody_else_or_of_another_search_is_a_bad_request;
   store_reload a_token_of_a_page_does_not_outlive_the_store_it_was_given_by
D1 where it is: metadata a_decision_point_with_a_path_is_found_behind_the_well_known_words
D2 200 and an object: metadata anybody_may_read_it_and_keep_it_for_a_while
D3 the identifier: metadata it_names_this_decision_point_and_every_endpoint,
   a_decision_point_with_a_path_is_found_behind_the_well_known_words, an_address_that_cannot_be_advertised_is_no_setting
D4 the evaluation endpoint: metadata it_names_this_decision_point_and_every_endpoint
D5 the others: metadata it_names_this_decision_point_and_every_endpoint, every_endpoint_that_it_names_answers
D6 capabilities, of which there are none: metadata it_names_this_decision_point_and_every_endpoint
D7 nothing without a value: metadata no_parameter_is_without_a_value
D8 signed metadata, which is not offered: metadata it_names_this_decision_point_and_every_endpoint
D9 kept for a while: metadata anybody_may_read_it_and_keep_it_for_a_while
D10 by the settings and no header: metadata no_header_changes_it,
   without_an_address_there_is_none_and_the_answer_names_the_setting
D11 nothing that a client would not know: metadata it_names_this_decision_point_and_every_endpoint
"""
LINES = dict(T=14, I=9, E=3, B=11, S=11, P=7, D=11)


def rows() -> dict[str, list[tuple[str, str]]]:
    """Of each line, the modules and names of its tests."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, shown in re.findall(r"^([A-Z]\d+) [^:]*:(.*(?:\n   .*)*)", TABLE, re.MULTILINE):
        parts = [part.split(None, 1) for part in shown.split(";")]
        found[name] = [(module, test.strip()) for module, tests in parts for test in tests.split(",")]
    return found


def module_of(name: str) -> ModuleType:
    return importlib.import_module(f"tests.authzen.test_{name}")


def test_every_line_has_a_test() -> None:
    assert list(rows()) == [f"{part}{number}" for part, last in LINES.items() for number in range(1, last + 1)]


@pytest.mark.parametrize("line", rows())
def test_what_shows_a_line_is_a_test(line: str) -> None:
    for module, test in rows()[line]:
        assert module in MODULES
        assert callable(getattr(module_of(module), f"test_{test}"))
