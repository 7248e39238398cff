//! What one generation of an extension leaves to the next: ports, and nothing else.

use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;

use libtest_mimic::Trial;
use tenon_host::Session;
use tenon_host::Status;
use tenon_tests::trial;

use crate::world::World;
use crate::world::answer;
use crate::world::call;
use crate::world::is_dead;
use crate::world::patiently;
use crate::world::pids;
use crate::world::until;
use crate::world::until_answer;
use crate::world::until_generation;
use crate::world::versioned;
use crate::world::with_tools;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("handover::a_fixed_port_goes_to_the_next_generation", fixed_port),
        trial("handover::a_port_that_a_neighbour_has_ends_nobody", neighbours_port),
        trial("handover::one_with_a_fixed_port_reloads_all_and_gets_its_answer", reloads_its_port),
        trial("handover::timers_servers_and_children_end_with_their_generation", leftovers),
        trial("handover::an_extension_that_reloads_all_gets_its_answer", reloads_itself),
        trial("handover::two_that_reload_at_once_get_their_answers", reload_at_once),
        trial("handover::the_agents_tool_reloads_what_is_on_disk", agents_tool),
    ]
}

/// A port that is free, and that nobody gets who asks for any port: those are above.
fn free_port() -> u16 {
    let first = 20_000 + (std::process::id() % 10_000) as u16;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (first..32_000).find(is_free).expect("a free port")
}

/// What a server answers; nothing if there is none.
fn get(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.rsplit_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

/// An extension with the given tools, and a server that answers a version.
fn server(port: u16, version: u32, tools: &str) -> String {
    let before = format!(
        "import http from \"node:http\";\n\
         const server = http.createServer((_, response) => response.end(\"version {version}\"));\n\
         await new Promise((resolve, reject) => {{\n\
           server.on(\"error\", reject);\n\
           server.listen({port}, \"127.0.0.1\", resolve);\n\
         }});"
    );
    with_tools(&before, tools)
}

async fn fixed_port() {
    let port = free_port();
    let server = |version: u32| {
        server(port, version, &format!("{{ name: \"version\", handler: () => \"{version}\" }}"))
    };
    let world = World::new();
    world.extension("server", &server(1));
    let session = world.live().await;
    assert_eq!(get(port).as_deref(), Some("version 1"));
    for version in 2..4 {
        world.extension("server", &server(version));
        // A call that comes just when the old generation ends, to make room for the port, fails and says so.
        patiently("the new generation answers", async {
            let version = version.to_string();
            while call(&session, "version").await.is_ok_and(|it| it.text_result_for_llm != version)
            {
                tokio::task::yield_now().await;
            }
        })
        .await;
        let wanted = format!("version {version}");
        until("the new generation serves", || get(port).as_deref() == Some(&*wanted)).await;
    }
    world.close(session).await;
}

async fn neighbours_port() {
    let port = free_port();
    let world = World::new();
    world.extension("owner", &server(port, 1, ""));
    world.extension("wants", &versioned("version", 1));
    let session = world.open(world.options()).await;
    assert_eq!(get(port).as_deref(), Some("version 1"));
    let tool = "{ name: \"version\", handler: () => \"2\" }";
    world.extension("wants", &server(port, 2, tool));
    let report = patiently("a refresh", session.refresh()).await;
    assert_eq!(report.failed, ["project:wants"]);
    let wants = &session.find("wants")[0];
    assert_eq!((wants.status, wants.generation), (Status::Running, 1), "{:?}", wants.error);
    assert_eq!(answer(&session, "version").await, "1");
    assert_eq!(get(port).as_deref(), Some("version 1"));
    world.close(session).await;
}

async fn reloads_its_port() {
    let port = free_port();
    let world = World::new();
    world.extension("server", &server(port, 1, &reloading("reload_all")));
    let session = world.open(world.options()).await;
    assert_eq!(answer(&session, "reload_all").await, "reloaded");
    // The port is free only when the call is over.
    until_generation(&session, "server", 2).await;
    assert_eq!(get(port).as_deref(), Some("version 1"));
    world.close(session).await;
}

async fn leftovers() {
    let world = World::new();
    let before = "import fs from \"node:fs\";\nimport http from \"node:http\";\nimport { spawn } from \"node:child_process\";\n\
        setInterval(() => fs.appendFileSync(\"ticks\", \"tick\\n\"), 5);\n\
        fs.writeFileSync(\"pids\", `${spawn(\"sleep\", [\"300\"]).pid}\\n`);\n\
        const server = http.createServer((_, response) => response.end(\"x\"));\n\
        await new Promise((resolve) => server.listen(0, \"127.0.0.1\", resolve));";
    let tools = "{ name: \"port\", handler: () => String(server.address().port) }";
    world.extension("busy", &with_tools(before, tools));
    let session = world.live().await;
    let port: u16 = answer(&session, "port").await.parse().unwrap();
    until("it ticks", || !world.lines("ticks").is_empty()).await;
    let waits = "{ name: \"waits\", handler: () => new Promise((resolve) => setTimeout(() => resolve(\"waited\"), 200)) }";
    world.extension("busy", &with_tools("", waits));
    until_answer(&session, "waits", "waited").await;
    let child = pids(&world.cwd().join("pids"))[0];
    until("its child is gone", || is_dead(child)).await;
    until("its port is free", || TcpStream::connect(("127.0.0.1", port)).is_err()).await;
    let ticks = world.lines("ticks").len();
    // Forty ticks long.
    assert_eq!(answer(&session, "waits").await, "waited");
    assert_eq!(world.lines("ticks").len(), ticks);
    world.close(session).await;
}

/// A tool that reloads everything and says so.
fn reloading(tool: &str) -> String {
    let handler = "async () => { await session.rpc.extensions.reload(); return \"reloaded\"; }";
    format!("{{ name: \"{tool}\", handler: {handler} }}")
}

/// An extension with such a tool.
fn reloader(tool: &str) -> String {
    with_tools("", &reloading(tool))
}

async fn all_run(session: &Session) {
    for info in session.list().into_iter().filter(|info| info.status != Status::Draining) {
        until_generation(session, &info.name, 2).await;
    }
}

async fn reloads_itself() {
    let world = World::new();
    world.extension("reloader", &reloader("reload_all"));
    world.extension("other", &versioned("version", 1));
    let session = world.live().await;
    world.extension("other", &versioned("version", 2));
    assert_eq!(answer(&session, "reload_all").await, "reloaded");
    assert_eq!(answer(&session, "version").await, "2");
    all_run(&session).await;
    // And once more, by the new generation.
    assert_eq!(answer(&session, "reload_all").await, "reloaded");
    world.close(session).await;
}

async fn reload_at_once() {
    let world = World::new();
    world.extension("one", &reloader("reload_one"));
    world.extension("two", &reloader("reload_two"));
    let session = world.live().await;
    let answers = tokio::join!(
        answer(&session, "reload_one"),
        answer(&session, "reload_two"),
        answer(&session, "reload_one"),
    );
    assert_eq!(answers, ("reloaded".into(), "reloaded".into(), "reloaded".into()));
    all_run(&session).await;
    world.close(session).await;
}

async fn agents_tool() {
    let world = World::new();
    world.extension("other", &versioned("version", 1));
    let session = world.open(world.options()).await;
    world.extension("other", &versioned("version", 2));
    world.extension("new", &versioned("new", 1));
    let said = answer(&session, "extensions_reload").await;
    assert!(said.contains("other") && said.contains("new"), "{said}");
    assert_eq!(answer(&session, "version").await, "2");
    assert_eq!(answer(&session, "new").await, "1");
    world.close(session).await;
}
