//! Appends.

use apus_fs_sim::checker::append::{Append, check};
use apus_fs_sim::history::MountId;

fn append(mount: u32, data: &'static str, is_owed: bool) -> Append {
    Append { mount: MountId(mount), data: data.into(), is_owed }
}

#[test]
fn lost_torn_doubled_and_reordered_appends_are_found() {
    let appends = [append(1, "<a1>", true), append(1, "<a2>", false), append(2, "<b1>", true)];
    for good in ["<a1><b1>", "<b1><a1><a2>", "<a1><b1><a2>"] {
        assert_eq!(check(good.as_bytes(), &appends), Ok(()), "{good}");
    }
    for bad in ["<a1><a2>", "<a1><b", "<a1><b1><b1>", "<b1><a2><a1>", "<a1>\0\0<b1>", "<a<b1>1>"] {
        check(bad.as_bytes(), &appends).expect_err(bad);
    }
}
