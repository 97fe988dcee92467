//! The ways to mount.

use crate::server::MemoryServer;
use crate::world::{World, by};
use apus_fuse::{MountError, MountMethod, MountOptions, SessionSettings, Unmount};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Set in the process that runs in a user namespace.
const INSIDE: &str = "APUS_FUSE_INSIDE_NAMESPACE";

fn writes_and_reads(method: MountMethod) -> bool {
    let Some(world) = World::with(&by(method), MemoryServer::default(), SessionSettings::default())
    else {
        return false;
    };
    fs::write(world.path("file"), "text").unwrap();
    assert_eq!(fs::read_to_string(world.path("file")).unwrap(), "text");
    assert_eq!(world.unmount(Unmount::IfUnused), apus_fuse::ReadError::Unmounted);
    true
}

#[test]
fn by_mount_as_root() {
    writes_and_reads(MountMethod::Direct);
}

#[test]
fn by_fusermount3() {
    writes_and_reads(MountMethod::Helper);
}

#[test]
fn in_a_user_namespace() {
    if std::env::var_os(INSIDE).is_some() {
        println!("mounted inside: {}", writes_and_reads(MountMethod::Direct));
        return;
    }
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "methods::in_a_user_namespace", "--nocapture"])
        .env(INSIDE, "1")
        .output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: no unshare(1)");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    if text.contains("mounted inside: true") {
        assert!(output.status.success(), "{text}");
    } else {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || errors.contains("unshare"), "{text}{errors}");
        eprintln!("SKIPPED: no mount in a user namespace here: {errors}");
    }
}

#[test]
fn a_bad_mount_point_or_option_is_named() {
    let missing = Path::new("/there/is/no/such/place");
    let error = apus_fuse::Mount::new(missing, &MountOptions::default()).unwrap_err();
    assert!(matches!(error, MountError::MountPoint { .. }), "{error}");
    assert!(error.to_string().contains("/there/is/no/such/place"));
    let mut options = MountOptions::default();
    options.subtype = "a,suid".to_owned();
    let error = apus_fuse::Mount::new(&std::env::temp_dir(), &options).unwrap_err();
    assert!(matches!(error, MountError::Option { option: "subtype" }), "{error}");
}

#[test]
fn what_fusermount3_says_is_in_the_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut options = by(MountMethod::Helper);
    options.fs_name = "x".repeat(10_000); // Longer than mount(2) takes.
    match apus_fuse::Mount::new(file.path(), &options) {
        Err(MountError::HelperRefused { message, .. }) => {
            assert!(message.contains("fusermount3"), "{message}");
        }
        Err(MountError::NoHelper { .. }) => eprintln!("SKIPPED: no fusermount3"),
        other => panic!("{other:?}"),
    }
}
