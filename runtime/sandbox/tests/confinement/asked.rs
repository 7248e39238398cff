//! Grants to try things with.

use std::path::PathBuf;

use tenon_protocol::message::Access;
use tenon_protocol::message::Grant;
use tenon_protocol::message::Guarded;
use tenon_sandbox::Layers;
use tenon_sandbox::Mode;

use crate::world::World;

/// What is asked of the sandbox.
pub struct Asked {
    pub grant: Grant,
    pub protected: Vec<PathBuf>,
    pub mode: Mode,
    pub usable: Layers,
}

/// Only the workspace, no network, no programs.
pub fn plain(world: &World) -> Asked {
    let inside = Access::only([world.text("ws")]);
    let none = Access::none();
    Asked {
        grant: Grant {
            read: inside.clone(),
            write: inside,
            net: none.clone(),
            run: none,
            guarded: Guarded::default(),
        },
        protected: Vec::new(),
        mode: Mode::Required,
        usable: Layers::every(),
    }
}

/// The same, where code is picked up from the workspace.
pub fn protected(world: &World) -> Asked {
    let paths = [".github/extensions", ".git/hooks", ".git/config"];
    let protected = paths.map(|path| world.workspace().join(path)).into();
    Asked { protected, ..plain(world) }
}

/// The same, named by links in the workspace.
pub fn protected_by_links(world: &World) -> Asked {
    let protected = ["ws/to-secret", "ws/sub/to-hooks"].map(|path| world.path(path)).into();
    Asked { protected, ..plain(world) }
}

/// Only the workspace, and it may start programs.
pub fn programs(world: &World) -> Asked {
    with(plain(world), |grant| grant.run = Access::only(["ls".to_owned(), "cat".to_owned()]))
}

pub fn programs_and_protected(world: &World) -> Asked {
    with(protected(world), |grant| grant.run = Access::all())
}

/// Everything may be read, and some of the workspace not.
pub fn secrets(world: &World) -> Asked {
    let deny = vec![world.text("ws/to-secret"), world.text("ws/sub/token.txt")];
    with(plain(world), |grant| grant.read = Access { allow: None, deny })
}

/// Everything may be read and written, but not the folder that all lies in.
pub fn hidden_home(world: &World) -> Asked {
    with(plain(world), |grant| {
        grant.read = Access { allow: None, deny: vec![world.text("")] };
        grant.write = Access::all();
    })
}

/// The workspace with a repository, of which only the branches may be written.
pub fn repository(world: &World) -> Asked {
    with(plain(world), |grant| {
        grant.write.deny = vec![world.text("ws/.git")];
        grant.guarded.open = vec![world.text("ws/.git/refs"), world.text("ws/.git/logs")];
    })
}

/// Every file and the network, with a folder of ours in the workspace.
pub fn home(world: &World) -> Asked {
    with(files(world), |grant| {
        grant.net = Access::all();
        grant.guarded = guarded(world);
    })
}

/// The workspace, with a folder of ours in it, and the part of that which belongs to the extension.
pub fn home_in_the_workspace(world: &World) -> Asked {
    with(plain(world), |grant| {
        grant.write = Access::only([world.text("ws"), world.text("ws/home/data")]);
        grant.guarded = Guarded { open: Vec::new(), ..guarded(world) };
    })
}

/// The workspace and everything beside it, with a folder of ours that a link in the workspace leads to.
pub fn home_by_a_link(world: &World) -> Asked {
    with(plain(world), |grant| {
        let all = Access::only([world.text("ws"), world.text("outside")]);
        (grant.read, grant.write) = (all.clone(), all);
        grant.guarded = guarded_at(world, "ws/to-home");
    })
}

fn guarded(world: &World) -> Guarded {
    guarded_at(world, "ws/home")
}

fn guarded_at(world: &World, home: &str) -> Guarded {
    let inside = |name: &str| vec![format!("{}{name}", world.text(home))];
    Guarded { frozen: inside(""), open: inside("/data"), closed: inside("/run") }
}

/// Every file, and no network.
pub fn files(world: &World) -> Asked {
    with(plain(world), |grant| (grant.read, grant.write) = (Access::all(), Access::all()))
}

pub fn some_hosts(world: &World) -> Asked {
    with(plain(world), |grant| grant.net = Access::only(["localhost".to_owned()]))
}

/// The same, and it may start programs.
pub fn some_hosts_and_programs(world: &World) -> Asked {
    with(some_hosts(world), |grant| grant.run = Access::all())
}

/// Every host but one, and programs.
pub fn all_hosts_but_one_and_programs(world: &World) -> Asked {
    with(some_hosts_and_programs(world), |grant| {
        grant.net = Access { allow: None, deny: vec!["example.org".to_owned()] };
    })
}

pub fn all_hosts_and_programs(world: &World) -> Asked {
    with(some_hosts_and_programs(world), |grant| grant.net = Access::all())
}

pub fn all_hosts(world: &World) -> Asked {
    with(plain(world), |grant| grant.net = Access::all())
}

pub fn read_only(world: &World) -> Asked {
    with(plain(world), |grant| grant.write = Access::none())
}

pub fn unrestricted(world: &World) -> Asked {
    with(plain(world), |grant| *grant = Grant::default())
}

pub fn with(mut asked: Asked, change: impl FnOnce(&mut Grant)) -> Asked {
    change(&mut asked.grant);
    asked
}

/// With a layer missing.
pub fn without(mut asked: Asked, change: impl FnOnce(&mut Layers)) -> Asked {
    change(&mut asked.usable);
    asked
}
