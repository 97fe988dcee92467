//! Names.

use apus_fs_core::wire::{Errno, Ino, Name};
use apus_fs_sim::checker::names::check;
use apus_fs_sim::history::{NameAction, RenameMode};

use crate::script::{Script, crash, event, synced};

fn at(directory: u64, text: &'static str) -> (Ino, Name) {
    (Ino(directory), Name::new(text).expect("a good name"))
}

fn create(directory: u64, text: &'static str, ino: u64) -> NameAction {
    NameAction::Create { at: at(directory, text), is_directory: false, result: Some(Ok(Ino(ino))) }
}

fn make_directory(text: &'static str, ino: u64) -> NameAction {
    NameAction::Create { at: at(1, text), is_directory: true, result: Some(Ok(Ino(ino))) }
}

fn look_up(directory: u64, text: &'static str, ino: Option<u64>) -> NameAction {
    NameAction::LookUp { at: at(directory, text), result: Some(Ok(ino.map(Ino))) }
}

fn rename(from: (Ino, Name), to: (Ino, Name)) -> NameAction {
    NameAction::Rename { from, to, mode: RenameMode::Replace, result: Some(Ok(())) }
}

fn remove(text: &'static str, is_directory: bool, result: Result<(), Errno>) -> NameAction {
    NameAction::Remove { at: at(1, text), is_directory, result: Some(result) }
}

fn list(names: &[(&'static str, u64)]) -> NameAction {
    let names = names.iter().map(|(text, ino)| (at(1, text).1, Ino(*ino))).collect();
    NameAction::List { directory: Ino(1), result: Some(Ok(names)) }
}

fn good(history: &Script<NameAction>) {
    assert_eq!(check(history, &[]), Ok(true));
}

fn bad(history: &Script<NameAction>) {
    check(history, &[]).expect_err("the violation is found");
}

#[test]
fn absence_is_not_stale() {
    let history = |found| {
        vec![
            event(1, 1, 2, look_up(1, "a", None)),
            event(2, 3, 4, create(1, "a", 10)),
            event(1, 5, 6, look_up(1, "a", found)),
        ]
    };
    good(&history(Some(10)));
    bad(&history(None));
    bad(&history(Some(11)));
}

#[test]
fn a_name_is_created_once() {
    let taken =
        NameAction::Create { at: at(1, "a"), is_directory: false, result: Some(Err(Errno(17))) };
    good(&vec![event(1, 1, 4, create(1, "a", 10)), event(2, 2, 3, taken.clone())]);
    bad(&vec![event(1, 1, 4, create(1, "a", 10)), event(2, 2, 3, create(1, "a", 11))]);
    bad(&vec![event(2, 2, 3, taken)]);
}

#[test]
fn a_rename_moves_at_once() {
    let history = |first, second| {
        vec![
            event(1, 1, 2, make_directory("d", 9)),
            event(1, 3, 4, create(1, "a", 10)),
            event(1, 5, 10, rename(at(1, "a"), at(9, "b"))),
            event(2, 6, 7, look_up(9, "b", first)),
            event(2, 8, 9, look_up(1, "a", second)),
        ]
    };
    good(&history(None, Some(10)));
    good(&history(None, None));
    good(&history(Some(10), None));
    bad(&history(Some(10), Some(10)));
}

#[test]
fn a_listing_is_of_one_instant() {
    let history = |names: &[(&'static str, u64)]| {
        vec![
            event(1, 1, 2, create(1, "a", 10)),
            event(2, 3, 8, list(names)),
            event(1, 4, 5, create(1, "b", 11)),
            event(1, 6, 7, remove("a", false, Ok(()))),
        ]
    };
    good(&history(&[("a", 10)]));
    good(&history(&[("a", 10), ("b", 11)]));
    good(&history(&[("b", 11)]));
    bad(&history(&[]));
}

#[test]
fn only_an_empty_directory_is_removed() {
    let history = |result| {
        vec![
            event(1, 1, 2, make_directory("d", 9)),
            event(1, 3, 4, create(9, "a", 10)),
            event(2, 5, 6, remove("d", true, result)),
        ]
    };
    good(&history(Err(Errno(39))));
    bad(&history(Ok(())));
}

#[test]
fn a_crash_loses_the_last_names() {
    let history = |names: &[(&'static str, u64)]| {
        vec![
            event(1, 1, 2, create(1, "a", 10)),
            event(1, 3, 4, create(1, "b", 11)),
            crash(1, 5),
            event(2, 6, 7, list(names)),
        ]
    };
    good(&history(&[]));
    good(&history(&[("a", 10)]));
    good(&history(&[("a", 10), ("b", 11)]));
    bad(&history(&[("b", 11)]));
}

#[test]
fn a_creation_without_an_answer_has_an_unknown_node() {
    let pending = NameAction::Create { at: at(1, "a"), is_directory: false, result: None };
    let history = |second| {
        vec![
            event(1, 1, 0, pending.clone()),
            event(2, 2, 3, look_up(1, "a", Some(77))),
            event(2, 4, 5, look_up(1, "a", second)),
        ]
    };
    good(&history(Some(77)));
    bad(&history(Some(78)));
    bad(&history(None));
}

#[test]
fn a_crash_loses_names_beside_those_of_others() {
    let history = |names: &[(&'static str, u64)]| {
        vec![
            event(1, 1, 2, make_directory("d", 9)),
            synced(1, 3, 4),
            event(1, 5, 6, create(9, "a", 10)),
            event(2, 7, 8, create(1, "b", 11)),
            crash(1, 9),
            event(2, 10, 11, list(names)),
            event(2, 12, 13, look_up(9, "a", None)),
        ]
    };
    good(&history(&[("b", 11), ("d", 9)]));
    bad(&history(&[("d", 9)]));
}

/// A lost change of a mount was not seen: the name existed again before the operation returned.
#[test]
fn a_result_may_come_from_behind_a_loss() {
    let exists = |until| {
        let result = Some(Err(Errno::EXIST));
        let create = NameAction::Create { at: at(1, "b"), is_directory: true, result };
        event(3, 3, until, create)
    };
    let history = |until| {
        vec![
            event(4, 1, 2, make_directory("b", 10)),
            exists(until),
            crash(4, 5),
            event(1, 6, 7, create(1, "b", 11)),
            event(1, 8, 9, look_up(1, "b", Some(11))),
        ]
    };
    good(&history(12));
    // Here it has seen the lost change.
    bad(&history(4));
}
