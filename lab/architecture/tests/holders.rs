//! Groups of state and the files that may take them.
//!
//! A function can take a type as a parameter only if its file imports it, so a file outside the
//! list of a group cannot change the group. Methods of a type in another file would bypass the
//! list.

use apus_architecture::imports::{Modules, join};
use apus_architecture::repository::workspace;
use std::collections::BTreeSet;

/// Package, file of a group, and the sibling files that may take the group.
const HOLDERS: &[(&str, &str, &str)] = &[
    (
        "files/core",
        "client::core",
        "events::ending events::batches events::greeting events::callbacks events::responses operations",
    ),
    ("files/core", "client::nodes::directories", "operations operations::directories"),
    (
        "files/core",
        "client::locks::table",
        "locks::relock locks::restoring core events::responses operations operations::locks operations::openings",
    ),
    ("files/core", "client::loss", "core events::ending operations::openings"),
    ("files/core", "client::recalls::table", "recalls::recall core status"),
    (
        "files/core",
        "server::core",
        "orphan_care batches ending welcome requests recall lock_requests",
    ),
    ("files/core", "server::locks", "core lock_requests"),
    ("files/core", "server::orphans", "core orphan_care"),
];

/// Packages whose types define their methods in their own file, and the exceptions: a file, and a
/// type.
const METHODS: &[(&str, &[(&str, &str)])] = &[(
    "files/core",
    &[
        ("client::interface::kind", "Operation"),
        ("server::locks", "HeldLock"),
        ("wire::kind", "Request"),
        ("wire::kind", "SessionRequest"),
    ],
)];

fn modules(package: &str) -> Modules {
    Modules::read(&workspace().join(package).join("src"))
}

#[test]
fn groups_of_state_are_taken_only_where_the_table_says() {
    for (package, group, holders) in HOLDERS {
        let modules = modules(package);
        let (folder, _) = group.split_once("::").unwrap();
        let mut expected: BTreeSet<String> =
            holders.split_whitespace().map(|holder| join(folder, holder)).collect();
        // The `mod.rs` has the whole state.
        expected.insert(folder.to_owned());
        let takes = |file: &&str| modules.imports_of(file).contains(*group);
        let found: BTreeSet<String> = modules.names().filter(takes).map(str::to_owned).collect();
        assert_eq!(found, expected, "files that take {group} of {package}");
    }
}

#[test]
fn methods_are_defined_beside_their_type() {
    let mut wrong = Vec::new();
    for (package, exceptions) in METHODS {
        let modules = modules(package);
        for file in modules.names() {
            let own = modules.types_of(file);
            for method in modules.types_with_methods(file) {
                if !own.contains(&method) && !exceptions.contains(&(file, method)) {
                    wrong.push(format!("{file} of {package} has methods of {method}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
