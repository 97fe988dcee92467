//! User ids that name one user.
//!
//! In a user namespace the kernel shows every user that is not mapped there as the overflow uid,
//! 65534 unless it is configured otherwise (user_namespaces(7)). Two ids that are equal then need
//! not be the same user's. A process whose own user is not mapped has this id as well, and would
//! take every unmapped user for its own.

use std::fs;

/// The overflow uid unless the system sets another one (Linux `kernel/sys.c` `overflowuid`).
const DEFAULT_OVERFLOW_UID: u32 = 65_534;

/// Returns whether `uid`, as the kernel shows it to this process, belongs to one user. It does not
/// if it is the overflow uid and no user is mapped to it.
///
/// The files are read each time: a process may enter another user namespace. Without them, as in
/// some sandboxes, the overflow uid counts as not mapped.
pub(super) fn names_one_user(uid: u32) -> bool {
    let overflow = fs::read_to_string("/proc/sys/kernel/overflowuid")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(DEFAULT_OVERFLOW_UID);
    uid != overflow
        || fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| is_mapped(&map, uid))
}

/// Returns whether `map` has a user for `uid`: its lines are first id here, first id outside,
/// number of ids.
fn is_mapped(map: &str, uid: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u32> = line.split_whitespace().filter_map(|it| it.parse().ok()).collect();
        matches!(numbers[..], [first, _, count] if uid.checked_sub(first).is_some_and(|n| n < count))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_namespace_maps_every_user() {
        let initial = "         0          0 4294967295\n";
        assert!(is_mapped(initial, 0) && is_mapped(initial, 65_534));
    }

    #[test]
    fn a_container_maps_some_users() {
        let map = "0 1000 1\n1 100000 65534\n";
        assert!(is_mapped(map, 0) && is_mapped(map, 65_534));
        assert!(!is_mapped(map, 65_535));
        assert!(!is_mapped("0 1000 1\n", 65_534));
        assert!(!is_mapped("", 65_534) && !is_mapped("0 1000\nx y z\n", 0));
    }
}
