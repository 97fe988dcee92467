//! Rights of other hosts at `apus fs serve`, with namespaces as hosts.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use crate::file_service::FileService;
use crate::harness::program;
use crate::hosts::Hosts;

const OVERFLOW_ID: u32 = 65_534;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// FSRUN-8: root of another host is not root here, unless the export trusts it.
#[test]
fn root_of_another_host_is_not_root() {
    if !Path::new("/dev/fuse").exists() || !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root mounts without the package fuse3");
        return;
    }
    let Some(program) = program() else { return };
    let Some(hosts) = Hosts::up() else { return };
    for (options, is_root) in [("", false), ("--trust-root", true)] {
        let service = FileService::new(&hosts, program.clone());
        let (served, here) = (service.path("served"), service.path("here"));
        fs::write(served.join("secret"), "of root").unwrap();
        set_mode(&served.join("secret"), 0o600);
        fs::create_dir(served.join("open")).unwrap();
        set_mode(&served.join("open"), 0o1777);
        let _server = service.serve(options);
        service.mount();

        let read = fs::read(here.join("secret"));
        assert_eq!(read.is_ok(), is_root, "{read:?}");
        assert_eq!(fs::write(here.join("planted"), "").is_ok(), is_root);
        fs::write(here.join("open/program"), "#!/bin/sh\n").unwrap();
        set_mode(&here.join("open/program"), 0o4755);
        service.umount();

        let made = fs::metadata(served.join("open/program")).unwrap();
        let expected = if is_root { (0, 0o4755) } else { (OVERFLOW_ID, 0o755) };
        assert_eq!((made.uid(), made.mode() & 0o7777), expected);
        assert_eq!(served.join("planted").exists(), is_root);
        for entry in fs::read_dir(served.join("open")).unwrap() {
            assert!(!entry.unwrap().file_type().unwrap().is_block_device());
        }
    }
}
