//! Prefixes.

use apus_fs_sim::checker::prefix::{PrivateAction, Snapshot, check};

fn snapshot(files: &[(&str, &str)]) -> Snapshot {
    files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.as_bytes().to_vec())).collect()
}

#[test]
fn a_rename_is_not_ahead_of_the_bytes() {
    let name = |text: &str| text.to_owned();
    let actions = [
        PrivateAction::Create { name: name("new") },
        PrivateAction::Write { name: name("new"), offset: 0, data: "text".into() },
        PrivateAction::Rename { from: name("new"), to: name("file") },
        PrivateAction::Remove { name: name("file") },
        PrivateAction::Create { name: name("last") },
    ];
    let before = snapshot(&[("file", "old")]);
    let check = |synced, files: &[(&str, &str)]| check(&before, &actions, synced, &snapshot(files));
    assert_eq!(check(0, &[("file", "old")]), Ok(0));
    assert_eq!(check(2, &[("file", "old"), ("new", "text")]), Ok(2));
    assert_eq!(check(2, &[("file", "text")]), Ok(3));
    assert_eq!(check(5, &[("last", "")]), Ok(5));
    check(0, &[("file", "")]).expect_err("the rename is ahead of the write");
    check(3, &[("file", "old"), ("new", "text")]).expect_err("a synced rename is lost");
    check(0, &[("file", "old"), ("last", "")]).expect_err("no prefix");
}
