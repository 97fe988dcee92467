//! `apus fs serve --exports`: several directories at one address, each with its own name.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::harness::{Service, object, run, text};

/// Directories to serve and places to mount them, and a list of both exports.
struct World {
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["music", "drop", "here"] {
            fs::create_dir(world.path(name)).unwrap();
        }
        fs::write(world.path("music/song"), "la").unwrap();
        let (music, drop) = (world.path("music"), world.path("drop"));
        let list = format!(
            "[music]\ndirectory = {music:?}\n\n[drop]\ndirectory = {drop:?}\nwritable = true\n"
        );
        fs::write(world.path("exports.toml"), list).unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

impl Drop for World {
    /// Detaches mounts left by a failed test, which would block the removal of the folder.
    fn drop(&mut self) {
        let _ = run(["fs", "umount", &self.text("here"), "--lazy"]);
    }
}

#[test]
fn each_export_has_its_name_and_its_rights() {
    if !Path::new("/dev/fuse").exists() || !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root mounts without the package fuse3");
        return;
    }
    let world = World::new();
    let service = Service::start_files(&["--exports", &world.text("exports.toml")]);
    let here = world.text("here");
    let mount = |name: &str| {
        run(["fs", "mount", &format!("{}/{name}", service.address()), &here, "--daemon"])
    };

    let mounted = mount("music");
    assert!(mounted.status.success(), "{}", text(&mounted.stderr));
    assert_eq!(fs::read_to_string(world.path("here/song")).unwrap(), "la");
    let refused = fs::write(world.path("here/other"), "").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
    assert!(run(["fs", "umount", &here]).status.success());

    let mounted = mount("drop");
    assert!(mounted.status.success(), "{}", text(&mounted.stderr));
    fs::write(world.path("here/file"), "new").unwrap();
    let place = format!("{}/drop", service.address());
    let asked = object(&run(["fs", "status", &place, "--json"]));
    assert_eq!(asked["clients"].as_array().map(Vec::len), Some(1), "{asked}");
    assert!(run(["fs", "umount", &here]).status.success());
    assert_eq!(fs::read_to_string(world.path("drop/file")).unwrap(), "new");

    let unknown = mount("films");
    assert_eq!(unknown.status.code(), Some(1));
    let said = text(&unknown.stderr);
    assert!(said.contains("no export of this name"), "{said}");

    service.signal(Signal::INT);
    let (code, _, said) = service.end();
    assert_eq!(code, Some(0), "{said}");
}

/// The list is rejected before any directory is served, and the message names the file and the
/// export.
#[test]
fn a_wrong_list_is_refused_by_name() {
    let world = World::new();
    let list = world.text("exports.toml");
    let music = world.path("music");
    for (text_of_list, problem) in [
        (format!("[music]\ndirectory = {music:?}\nwriteable = true\n"), "writeable"),
        ("[music]\ndirectory = '/does/not/exist'\n".to_owned(), "/does/not/exist"),
    ] {
        fs::write(&list, text_of_list).unwrap();
        let refused = run(["fs", "serve", "--exports", &list]);
        assert_eq!(refused.status.code(), Some(2));
        let said = text(&refused.stderr);
        assert!(said.contains("exports.toml") && said.contains(problem), "{said}");
    }
}
