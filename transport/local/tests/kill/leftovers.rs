//! Shared memory, descriptors and files that a process holds.

/// Number of mappings of pairs, and of open descriptors.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Leftovers {
    mappings: usize,
    descriptors: usize,
}

pub(crate) fn of_this_process() -> Leftovers {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mappings = maps.lines().filter(|line| line.contains("memfd:apus-local")).count();
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
    Leftovers { mappings, descriptors }
}

/// Asserts that no file or socket name of this crate is left on the system.
pub(crate) fn assert_nothing_on_disk() {
    for folder in ["/dev/shm", "/run", "/tmp"] {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries {
            let name = entry.unwrap().file_name().to_string_lossy().into_owned();
            assert!(!name.contains("apus-local"), "{folder}/{name}");
        }
    }
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
    let own = format!("@apus-local/1/kill/{}/", std::process::id());
    assert!(!sockets.contains(&own), "a name outlives its socket");
}
