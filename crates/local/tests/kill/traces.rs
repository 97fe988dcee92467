//! What does a process hold of shared memory and descriptors, and what lies on disk?

/// Mappings of pairs, and open descriptors.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Traces {
    mappings: usize,
    descriptors: usize,
}

pub(crate) fn of_this_process() -> Traces {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mappings = maps.lines().filter(|line| line.contains("memfd:apus-local")).count();
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
    Traces { mappings, descriptors }
}

/// No name of ours in the places where such things are left.
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
