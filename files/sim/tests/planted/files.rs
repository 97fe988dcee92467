//! Contents of files.

use apus_fs_sim::checker::file::check;
use apus_fs_sim::history::FileAction;

use crate::script::{Script, crash, event, synced};

fn write(offset: u64, data: &'static str) -> FileAction {
    FileAction::Write { offset, data: data.into(), is_done: true }
}

fn append(data: &'static str) -> FileAction {
    FileAction::Append { data: data.into(), is_done: true }
}

fn read(result: &'static str) -> FileAction {
    FileAction::Read { offset: 0, length: 100, result: Some(result.into()) }
}

fn good(history: &Script<FileAction>) {
    assert_eq!(check("file", history), Ok(true));
}

fn bad(history: &Script<FileAction>) {
    check("file", history).expect_err("the violation is found");
}

#[test]
fn a_read_sees_the_last_write() {
    good(&vec![event(1, 1, 2, write(0, "a")), event(2, 3, 4, read("a"))]);
    bad(&vec![event(1, 1, 2, write(0, "a")), event(2, 3, 4, read(""))]);
}

#[test]
fn a_cached_copy_is_not_stale() {
    let stale = |result| {
        vec![
            event(1, 1, 2, write(0, "old")),
            event(2, 3, 4, read("old")),
            event(1, 5, 6, write(0, "new")),
            event(2, 7, 8, read(result)),
        ]
    };
    good(&stale("new"));
    bad(&stale("old"));
}

#[test]
fn a_concurrent_read_sees_either() {
    for result in ["old", "new"] {
        good(&vec![
            event(1, 1, 2, write(0, "old")),
            event(1, 3, 6, write(0, "new")),
            event(2, 4, 5, read(result)),
        ]);
    }
}

#[test]
fn values_do_not_return() {
    bad(&vec![
        event(1, 1, 2, write(0, "old")),
        event(1, 3, 10, write(0, "new")),
        event(2, 4, 5, read("new")),
        event(3, 6, 7, read("old")),
    ]);
}

#[test]
fn a_write_is_seen_whole() {
    let torn = |result| {
        vec![
            event(1, 1, 2, write(0, "....")),
            event(1, 3, 6, write(0, "abcd")),
            event(2, 4, 5, read(result)),
        ]
    };
    good(&torn("abcd"));
    bad(&torn("ab.."));
}

#[test]
fn concurrent_appends_both_stay() {
    let appends = |result| {
        vec![
            event(1, 1, 4, append("one")),
            event(2, 2, 3, append("two")),
            event(3, 5, 6, read(result)),
        ]
    };
    good(&appends("onetwo"));
    good(&appends("twoone"));
    bad(&appends("two"));
    bad(&appends("onetwoone"));
}

#[test]
fn a_mount_sees_its_own_writes_in_order() {
    bad(&vec![
        event(1, 1, 2, append("a")),
        event(1, 3, 4, append("b")),
        event(1, 5, 6, read("ba")),
    ]);
}

#[test]
fn an_operation_without_an_answer_may_have_been_executed() {
    for result in ["", "late"] {
        good(&vec![event(1, 1, 0, write(0, "late")), event(2, 2, 3, read(result))]);
    }
    bad(&vec![
        event(1, 1, 0, write(0, "late")),
        event(2, 2, 3, read("late")),
        event(2, 4, 5, read("")),
    ]);
}

#[test]
fn a_crash_loses_a_suffix_only() {
    let crashed = |result| {
        vec![
            event(1, 1, 2, append("a")),
            event(1, 3, 4, append("b")),
            event(1, 5, 6, append("c")),
            crash(1, 7),
            event(2, 8, 9, read(result)),
        ]
    };
    for result in ["", "a", "ab", "abc"] {
        good(&crashed(result));
    }
    bad(&crashed("b"));
    bad(&crashed("ac"));
}

#[test]
fn a_crash_does_not_lose_what_was_synced() {
    let crashed = |result| {
        vec![
            event(1, 1, 2, append("a")),
            synced(1, 3, 4),
            event(1, 5, 6, append("b")),
            crash(1, 7),
            event(2, 8, 9, read(result)),
        ]
    };
    good(&crashed("a"));
    good(&crashed("ab"));
    bad(&crashed(""));
}

#[test]
fn a_crash_does_not_lose_what_others_have_seen() {
    let crashed = |result| {
        vec![
            event(1, 1, 2, append("a")),
            event(2, 3, 4, read("a")),
            event(1, 5, 6, append("b")),
            crash(1, 7),
            event(2, 8, 9, read(result)),
        ]
    };
    good(&crashed("a"));
    bad(&crashed(""));
}

#[test]
fn nothing_is_lost_without_a_crash() {
    bad(&vec![event(1, 1, 2, append("a")), crash(2, 3), event(2, 4, 5, read(""))]);
}

#[test]
fn a_size_is_a_read() {
    let size = |size| FileAction::Size { result: Some(size) };
    let cut = FileAction::Truncate { size: 1, is_done: true };
    let history = |found| {
        vec![
            event(1, 1, 2, append("abc")),
            event(2, 3, 4, cut.clone()),
            event(1, 5, 6, size(found)),
        ]
    };
    good(&history(1));
    bad(&history(3));
}

#[test]
fn a_write_of_what_is_there_already_may_be_ordered_later() {
    good(&vec![
        event(1, 1, 2, write(0, "a")),
        event(1, 3, 6, write(0, "a")),
        event(2, 4, 5, write(0, "b")),
        event(3, 7, 8, read("a")),
    ]);
}
