//! The shape of the workspace: product and tools apart, every crate on the map;
//! and the layers of this crate.
//!
//! In a packaged crate there is no workspace: the tests print that and pass.

mod imports;

use imports::{Modules, join};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of the first level that hold packages.
const WINGS: [&str; 6] = ["transport", "rpc", "languages", "files", "lab", "command"];

/// The workspace, if this is a checkout of it.
fn workspace() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if root.join("ARCHITECTURE.md").exists() {
        return Some(root);
    }
    eprintln!("SKIPPED: no ARCHITECTURE.md; this is not a checkout of the workspace");
    None
}

/// The crates in `folder` of the workspace: a wing.
fn members(root: &Path, folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
    // A build or a switch of branches can leave a folder without a manifest.
    let mut members: Vec<_> = entries.filter(|path| path.join("Cargo.toml").exists()).collect();
    members.sort();
    assert!(members.len() > 1, "{folder} is not where this test expects it: {members:?}");
    members
}

#[test]
fn nothing_that_an_application_links_depends_on_a_tool() {
    let Some(root) = workspace() else { return };
    for wing in ["transport", "rpc", "languages", "files"] {
        for member in members(&root, wing) {
            let manifest = fs::read_to_string(member.join("Cargo.toml")).unwrap();
            assert!(!manifest.contains("/lab/"), "{} depends on the lab", member.display());
        }
    }
}

#[test]
fn the_map_names_every_crate_and_no_other() {
    let Some(root) = workspace() else { return };
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    for folder in WINGS {
        let members = members(&root, folder);
        let names = members.iter().map(|member| member.file_name().unwrap().to_str().unwrap());
        let names: Vec<&str> = names.collect();
        for name in &names {
            let path = format!("{folder}/{name}");
            assert!(page.contains(&path), "ARCHITECTURE.md does not name {path}");
        }
        for (_, rest) in page
            .match_indices(&format!("{folder}/"))
            .map(|(at, found)| page.split_at(at + found.len()))
        {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
            let name = &rest[..end.unwrap_or(rest.len())];
            let other = ["adr", "compare", "log", "python", "main"];
            // `transport/commands.rs` is a file of a package, in its folder of that name.
            let is_file = rest[name.len()..].starts_with(".rs");
            let is_known = name.is_empty() || other.contains(&name) || names.contains(&name);
            let is_known = is_known || is_file;
            assert!(is_known, "there is no {folder}/{name}");
        }
    }
}

/// The layers of `src`: in each folder, its modules in order, the lowest first. A module imports
/// only modules before it. `lib.rs` and the `mod.rs` files only declare and re-export.
const LAYERS: &str = "
crate
    warning trace error security overload engine metrics snapshot introspection
    call submission cork request handle endpoint arrival interruption builder tokio settings metrics_bridge prometheus
crate::engine
    clock cpu waiting tracer handoff state paths core shard poll runners shards
crate::engine::core
    root transmission stealing neighbours messages commands shutdown timeout pass
crate::engine::handoff
    sync token task_place waiter wake_list poll_role queue siblings model
crate::engine::paths
    local receive
crate::engine::paths::local
    path routes clients outstanding_calls served_requests cork state context calls requests
crate::engine::paths::receive
    local receiver
crate::engine::poll
    wait_target poll_loop watch_set background_poller
crate::engine::runners
    event_loop blocking dedicated asynchronous
crate::engine::state
    message backlog calls
    time call_timeout cork quota observation polling room drain inbox network delivery
crate::engine::tracer
    stages records probe_events
crate::engine::waiting
    poll_mode spin cooperative alarm signal descriptor
crate::overload
    share quota feedback
";

/// The modules of each folder in [`LAYERS`], in order.
fn layers() -> BTreeMap<String, Vec<&'static str>> {
    let mut layers = BTreeMap::new();
    let mut folder = String::new();
    for line in LAYERS.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("    ") {
            None => {
                folder = line.strip_prefix("crate").unwrap().trim_start_matches("::").to_owned();
            }
            Some(names) => {
                let modules: &mut Vec<&str> = layers.entry(folder.clone()).or_default();
                modules.extend(names.split_whitespace());
            }
        }
    }
    layers
}

/// The folder that two modules share, and what each is in there.
fn fork(one: &str, other: &str) -> (String, String, String) {
    let [one, other] = [one, other].map(|path| path.split("::").collect::<Vec<_>>());
    let same = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let at = |path: &[&str]| path.get(same).map_or_else(String::new, |part| (*part).to_owned());
    (one[..same].join("::"), at(&one), at(&other))
}

#[test]
fn modules_import_only_modules_of_lower_layers() {
    let (modules, layers) = (Modules::read(), layers());
    let mut wrong = Vec::new();
    let mut edges = 0;
    for module in modules.names() {
        for target in modules.imports_of(module) {
            edges += 1;
            let (folder, from, to) = fork(module, &target);
            if from.is_empty() {
                wrong.push(format!(
                    "{module} imports its own child {target}: it must only declare and re-export"
                ));
                continue;
            }
            if to.is_empty() {
                wrong.push(format!("{module} imports {target}, which it is in"));
                continue;
            }
            let Some(order) = layers.get(&folder) else { continue };
            let place = |name: &str| order.iter().position(|other| *other == name);
            match (place(&from), place(&to)) {
                (Some(from), Some(to)) if to < from => {}
                (Some(_), Some(_)) => {
                    wrong.push(format!("{module} imports {target}, which is in a higher layer"));
                }
                _ => wrong.push(format!("{from} or {to} is in no layer of \"{folder}\"")),
            }
        }
    }
    assert!(edges > 200, "imports are not found: {edges}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_of_a_layered_folder_is_in_a_layer() {
    let modules = Modules::read();
    for (folder, order) in layers() {
        let prefix = join(&folder, "");
        let inside = modules.names().filter_map(|module| module.strip_prefix(&*prefix));
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
