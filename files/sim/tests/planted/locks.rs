//! Locks.

use apus_fs_core::wire::{LockKind, LockRange};
use apus_fs_sim::checker::lock::{Hold, check};
use apus_fs_sim::history::{Moment, MountId};

fn hold(mount: u32, kind: LockKind, range: (u64, u64), from: u64, until: Option<u64>) -> Hold {
    Hold {
        file: 1,
        mount: MountId(mount),
        owner: 1,
        kind,
        range: LockRange { start: range.0, end: range.1 },
        from: Moment(from),
        until: until.map(Moment),
    }
}

#[test]
fn owners_exclude_each_other() {
    let first = hold(1, LockKind::Write, (0, 9), 1, Some(5));
    for good in [
        hold(2, LockKind::Write, (0, 9), 6, None),
        hold(2, LockKind::Write, (10, 19), 2, None),
        hold(1, LockKind::Read, (0, 9), 2, None),
    ] {
        assert_eq!(check(&[first.clone(), good]), Ok(()));
    }
    for bad in [
        hold(2, LockKind::Write, (9, 9), 4, None),
        hold(2, LockKind::Read, (0, u64::MAX), 2, Some(3)),
    ] {
        check(&[first.clone(), bad]).expect_err("two owners");
    }
    let readers =
        [hold(1, LockKind::Read, (0, 9), 1, None), hold(2, LockKind::Read, (0, 9), 1, None)];
    assert_eq!(check(&readers), Ok(()));
}
