//! Directories that move between directories, which only the server can decide (found by the
//! simulator, seeds 388, 556, 826, 983).

use apus_fs_core::client::{Operation, Reply};
use apus_fs_core::wire::{Errno, Ino, NewNode, Response};

use crate::world::{World, place};

fn rename(from: (Ino, &str), to: (Ino, &str)) -> Operation {
    Operation::Rename {
        from: place(from.0, from.1),
        to: place(to.0, to.1),
        exchange: false,
        no_replace: false,
    }
}

fn create(directory: Ino, name: &str) -> Operation {
    let place = place(directory, name);
    Operation::Create { place, node: NewNode::File, mode: 0o644, open: false }
}

/// No node can be created in a directory that another one has replaced: the change would be lost.
#[test]
fn a_replaced_directory_is_gone() {
    let mut world = World::new(1);
    let below = world.mkdir(0, Ino::ROOT, "below");
    let moved = world.mkdir(0, below, "moved");
    let replaced = world.mkdir(0, Ino::ROOT, "replaced");
    assert_eq!(world.run(0, rename((below, "moved"), (Ino::ROOT, "replaced"))), Ok(Reply::Done));
    assert_eq!(world.run(0, create(replaced, "late")), Err(Errno::NOENT));
    assert_eq!(world.look_up(0, Ino::ROOT, "replaced"), Some(moved));
    world.flush(0);
    assert_eq!(world.warnings, [""; 0]);
}

/// A change that arrives while the server decides waits for the decision.
#[test]
fn changes_wait_for_a_rename_under_way() {
    let mut world = World::new(1);
    let below = world.mkdir(0, Ino::ROOT, "below");
    let moved = world.mkdir(0, below, "moved");
    let replaced = world.mkdir(0, Ino::ROOT, "replaced");
    world.flush(0);
    world.hold_back(0, |response| matches!(response, Response::BatchDone(_)));
    let renamed = world.begin(0, rename((below, "moved"), (Ino::ROOT, "replaced")));
    let inside = world.begin(0, create(replaced, "late"));
    let again = world.begin(0, rename((below, "moved"), (below, "other")));
    assert_eq!((world.ended(0, inside), world.ended(0, again)), (None, None));
    world.release();
    assert_eq!(world.wait(0, renamed), Ok(Reply::Done));
    assert_eq!(world.wait(0, inside), Err(Errno::NOENT));
    assert_eq!(world.wait(0, again), Err(Errno::NOENT));
    assert_eq!(world.look_up(0, Ino::ROOT, "replaced"), Some(moved));
    world.flush(0);
    assert_eq!(world.warnings, [""; 0]);
}

/// The outcome at the server is visible although the program did not wait for it.
#[test]
fn a_rename_that_was_interrupted_may_have_happened() {
    let mut world = World::new(1);
    let below = world.mkdir(0, Ino::ROOT, "below");
    let moved = world.mkdir(0, below, "moved");
    world.flush(0);
    world.hold_back(0, |response| matches!(response, Response::BatchDone(_)));
    let renamed = world.begin(0, rename((below, "moved"), (Ino::ROOT, "moved")));
    world.interrupt(0, renamed);
    assert_eq!(world.wait(0, renamed), Err(Errno::INTR));
    world.release();
    assert_eq!(world.look_up(0, below, "moved"), None);
    assert_eq!(world.look_up(0, Ino::ROOT, "moved"), Some(moved));
}
