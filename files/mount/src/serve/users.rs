//! Users of this host and their groups, from the system's database (`nsswitch.conf`).

#![expect(unsafe_code, reason = "the C library reads the database of users")]

use std::mem::MaybeUninit;

use apus_fs_core::rights::{OVERFLOW_ID, User};

/// Bytes for the strings of an entry. Source: glibc asks for 1,024.
const STRINGS: usize = 16 << 10;

/// Most groups of a user. Source: Linux `NGROUPS_MAX`.
const MOST_GROUPS: usize = 65_536;

/// Returns a user with its groups. A user that the database does not have, or of whom it cannot be
/// read, has the group `nogroup` only: never more rights than its own.
pub(super) fn find(uid: u32) -> User {
    let alone = User { uid, gid: OVERFLOW_ID, groups: Vec::new() };
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut strings = vec![0; STRINGS];
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for writes of the given lengths until the call returns.
    let failed = unsafe {
        let (to, length) = (strings.as_mut_ptr(), strings.len());
        libc::getpwuid_r(uid, entry.as_mut_ptr(), to, length, &raw mut found)
    };
    if failed != 0 || found.is_null() {
        return alone;
    }
    // SAFETY: `found` is not null, so the entry is initialised.
    let entry = unsafe { entry.assume_init() };
    let gid = entry.pw_gid;
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the name is a string in `strings`, and `groups` has room for `count` elements.
        let got =
            unsafe { libc::getgrouplist(entry.pw_name, gid, groups.as_mut_ptr(), &raw mut count) };
        if got >= 0 {
            groups.truncate(usize::try_from(got).unwrap_or_default());
            groups.retain(|group| *group != gid);
            return User { uid, gid, groups };
        }
        if groups.len() >= MOST_GROUPS {
            return User { uid, gid, groups: Vec::new() };
        }
        groups.resize(groups.len() * 4, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_the_system_have_their_groups() {
        assert_eq!(find(0).gid, 0);
        let unknown = find(3_999_999_999);
        assert_eq!((unknown.gid, unknown.groups), (OVERFLOW_ID, Vec::new()));
    }
}
