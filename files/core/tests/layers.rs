//! Layers of `apus-fs-core`: imports go downward only, and no files import each other in a circle.
//!
//! Each folder has one table. A file may import the files of its folder that are in a line above
//! its own, or earlier in its own line. Files outside of the folder belong to the table of the
//! folder in which the two paths part.
//!
//! A second table states which files may name a group of state. To import the type is the only way
//! to take it as a parameter: so a file that is not in the list of a group cannot change it.

#[path = "../../../transport/apus/tests/imports/mod.rs"]
mod imports;

use std::collections::{BTreeMap, BTreeSet};

use imports::{Modules, join};

/// The files of each folder, the lowest first.
const LAYERS: &str = "
crate
    tally wire held_locks store client server
crate::wire
    limits errno name attributes handle lease lock record request response callback check frame kind
crate::client
    operation kind effect
    extents contents node read_ahead renames directories
    session calls log output link
    cache prefetch install cancellation eviction
    waiting loans recalls recall
    unsettled locks relock restoring
    loss status metrics schedule
    core ending batches greeting callbacks responses operations
crate::client::operations
    turn entries lease resolve read attributes write contents places locks openings create rename
    names directories xattrs
crate::server
    effect settings output
    handles contention leases queue session recalls abandoned learned access
    fences latecomers attempt grants reads lists status metrics reclaim
    records appended early_locks locks orphans core
    orphan_care batches ending welcome requests recall lock_requests
";

/// Groups of state, and the files that may take them.
const HOLDERS: &[(&str, &str)] = &[
    ("client::core", "ending batches greeting callbacks responses operations"),
    ("client::directories", "operations operations::directories"),
    (
        "client::locks",
        "relock restoring core responses operations operations::locks operations::openings",
    ),
    ("client::loss", "core ending operations::openings"),
    ("client::recalls", "recall core status"),
    ("server::core", "orphan_care batches ending welcome requests recall lock_requests"),
    ("server::locks", "core lock_requests"),
    ("server::orphans", "core orphan_care"),
];

/// Files with methods of a type of another file: `kind` names the variants of messages and
/// operations.
const BESIDE: &[(&str, &str)] = &[
    ("client::kind", "Operation"),
    ("server::locks", "HeldLock"),
    ("wire::kind", "Request"),
    ("wire::kind", "SessionRequest"),
];

/// The files of each folder in [`LAYERS`], in order.
fn layers() -> BTreeMap<String, Vec<&'static str>> {
    let mut layers = BTreeMap::new();
    let mut folder = String::new();
    for line in LAYERS.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("    ") {
            None => {
                folder = line.strip_prefix("crate").unwrap().trim_start_matches("::").to_owned();
            }
            Some(names) => {
                let files: &mut Vec<&str> = layers.entry(folder.clone()).or_default();
                files.extend(names.split_whitespace());
            }
        }
    }
    layers
}

/// The folder in which two paths part, and the name of each in there; empty for the folder itself.
fn fork<'a>(one: &'a str, other: &'a str) -> (String, &'a str, &'a str) {
    let [one, other] = [one, other].map(|path| path.split("::").collect::<Vec<_>>());
    let same = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let at = |path: &[&'a str]| path.get(same).copied().unwrap_or_default();
    (one[..same].join("::"), at(&one), at(&other))
}

#[test]
fn imports_go_downward() {
    let (modules, layers) = (Modules::read(), layers());
    let (mut wrong, mut edges) = (Vec::new(), 0);
    for file in modules.names() {
        for target in modules.imports_of(file) {
            edges += 1;
            let (folder, from, to) = fork(file, &target);
            // The `mod.rs` of a folder is above its files.
            if from.is_empty() {
                continue;
            }
            let order = &layers[&folder];
            let place = |name: &str| order.iter().position(|other| *other == name);
            if to.is_empty() || place(to) >= place(from) {
                wrong.push(format!("{file} imports {target}, which is not below it"));
            }
        }
    }
    assert!(edges > 200, "imports are not found: {edges}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_is_in_a_table() {
    let modules = Modules::read();
    for (folder, order) in layers() {
        let prefix = join(&folder, "");
        let inside = modules.names().filter_map(|file| file.strip_prefix(&*prefix));
        let names: BTreeSet<&str> = inside
            .filter(|rest| !rest.is_empty())
            .map(|rest| rest.split("::").next().unwrap())
            .collect();
        assert_eq!(names, order.iter().copied().collect(), "in \"{folder}\"");
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    assert_eq!(Modules::read().circle(), None);
}

#[test]
fn groups_of_state_are_taken_only_where_the_table_says() {
    let modules = Modules::read();
    for (group, holders) in HOLDERS {
        let (folder, _) = group.split_once("::").unwrap();
        let mut expected: BTreeSet<String> =
            holders.split_whitespace().map(|holder| join(folder, holder)).collect();
        // The `mod.rs` has the whole state.
        expected.insert(folder.to_owned());
        let takes = |file: &&str| modules.imports_of(file).contains(*group);
        let found: BTreeSet<String> = modules.names().filter(takes).map(str::to_owned).collect();
        assert_eq!(found, expected, "files that take {group}");
    }
}

/// Methods of a type in another file would pass by the tables.
#[test]
fn methods_are_defined_beside_their_type() {
    let modules = Modules::read();
    let mut wrong = Vec::new();
    for file in modules.names() {
        let own = modules.types_of(file);
        for method in modules.types_with_methods(file) {
            if !own.contains(&method) && !BESIDE.contains(&(file, method)) {
                wrong.push(format!("{file} has methods of {method}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
