//! Waiting: for the next line, and for what a line has set going. Meanwhile events are printed, questions are
//! asked, and one key interrupts.

use std::pin::pin;
use std::time::Duration;
use std::time::Instant;

use tenon_host::Session;
use tenon_host::events::Event;

use super::Chat;
use super::editor::Typed;
use super::input::Input;
use crate::sanitise::one_line;
use crate::terminal::dialog::Request;
use crate::terminal::keys::Key;
use crate::terminal::screen;

/// How long nothing is printed before it is said what is waited for.
const QUIET: Duration = Duration::from_secs(1);

/// How often that is said anew.
const TICK: Duration = Duration::from_secs(1);

/// What the key that interrupts does.
pub enum OnInterrupt<'a> {
    /// It aborts the turn, whose end is waited for.
    Abort(&'a Session),
    /// It gives up waiting; the work is dropped.
    Leave,
}

/// What waiting has come to.
pub enum Waited<T> {
    /// The work is done.
    Done(T),
    /// The person gave up.
    Left,
    /// The program is to end.
    Stopped,
}

impl Chat<'_> {
    /// The next line that is entered; none at the end.
    pub(super) async fn next_line(&mut self) -> Option<String> {
        self.follow().await;
        match self.input {
            Input::Person(_) => self.typed().await,
            Input::Lines(_) => self.read().await,
        }
    }

    /// The next line from a person.
    async fn typed(&mut self) -> Option<String> {
        let mut interrupts = 0;
        let mut draw = true;
        loop {
            let Input::Person(person) = &mut self.input else { return None };
            if std::mem::replace(&mut draw, true) {
                screen::begin_line();
                screen::write(&person.editor.draw(screen::size()));
            }
            tokio::select! {
                biased;
                () = self.stop.wanted() => return None,
                key = person.keys.next() => match person.editor.key(key?) {
                    Typed::Entered => {
                        screen::write(&person.editor.leave(screen::size()));
                        return Some(person.editor.take());
                    }
                    Typed::End => {
                        screen::write(&person.editor.leave(screen::size()));
                        return None;
                    }
                    Typed::Interrupt if interrupts > 0 => {
                        screen::write(&person.editor.erase());
                        return None;
                    }
                    Typed::Interrupt => {
                        interrupts += 1;
                        screen::write(&person.editor.erase());
                        self.note("Ctrl-C again, or Ctrl-D, ends; /help says what can be done");
                        continue;
                    }
                    Typed::Complete => self.complete(),
                    Typed::Clear => screen::write("\x1b[H\x1b[2J"),
                    Typed::Suspend => {
                        screen::write(&person.editor.erase());
                        person.keys.suspend();
                    }
                    Typed::Changed => {}
                },
                Some(request) = self.asks.recv() => {
                    screen::write(&person.editor.erase());
                    self.put(request).await;
                }
                event = self.feed.next() => {
                    draw = self.happened(&event).await;
                    continue;
                }
            }
            interrupts = 0;
        }
    }

    /// Something happens while the person types; true if the prompt is to be drawn again.
    async fn happened(&mut self, event: &Event) -> bool {
        let mut text = self.renderer.event(event);
        while let Some(event) = self.feed.try_next() {
            text.push_str(&self.renderer.event(&event));
        }
        // An extension has something for the agent to do.
        let busy = self.is_busy().await;
        if !busy {
            text.push_str(&self.renderer.finish());
        }
        if text.is_empty() && !busy {
            return false;
        }
        if let Input::Person(person) = &mut self.input {
            screen::write(&person.editor.erase());
        }
        self.print(&text);
        self.follow().await;
        true
    }

    /// The next line of standard input; at its end the agent finishes what it has.
    async fn read(&mut self) -> Option<String> {
        loop {
            let Input::Lines(lines) = &mut self.input else { return None };
            tokio::select! {
                biased;
                () = self.stop.wanted() => return None,
                line = lines.next() => match line {
                    Some(line) => return Some(line),
                    None => {
                        self.follow().await;
                        return None;
                    }
                },
                event = self.feed.next() => self.show(&event),
            }
        }
    }

    /// Whether the agent works, or is about to.
    async fn is_busy(&self) -> bool {
        let Some(open) = &self.open else { return false };
        tokio::select! {
            biased;
            () = open.conversation.session().idle() => false,
            () = std::future::ready(()) => true,
        }
    }

    /// Waits until the session is idle.
    async fn follow(&mut self) {
        if !self.is_busy().await {
            return;
        }
        let Some(open) = &self.open else { return };
        let session = open.conversation.session().clone();
        let idle = session.idle();
        self.wait("working", OnInterrupt::Abort(&session), idle).await;
    }

    /// Waits for work. What takes long is said to.
    pub(super) async fn wait<T>(
        &mut self,
        label: &str,
        on_interrupt: OnInterrupt<'_>,
        work: impl Future<Output = T>,
    ) -> Waited<T> {
        let mut work = pin!(work);
        let began = Instant::now();
        self.printed = began;
        let mut label = label.to_owned();
        let mut said = began;
        let waited = loop {
            let say_at = (self.printed + QUIET).max(said + TICK);
            tokio::select! {
                // Keys before events: also a flood can be interrupted.
                biased;
                () = self.stop.wanted() => break Waited::Stopped,
                key = self.input.key() => match self.busy_key(key) {
                    Busy::GoOn => {}
                    Busy::Gone => break Waited::Stopped,
                    Busy::Interrupt => {
                        self.forget_queue();
                        match &on_interrupt {
                            OnInterrupt::Abort(session) => {
                                session.abort("user_initiated");
                                label = "stopping".to_owned();
                            }
                            OnInterrupt::Leave => break Waited::Left,
                        }
                    }
                },
                done = &mut work => break Waited::Done(done),
                Some(request) = self.asks.recv() => self.put(request).await,
                event = self.feed.next() => self.show(&event),
                () = tokio::time::sleep_until(say_at.into()) => {
                    said = Instant::now();
                    if self.input.is_person() {
                        let seconds = began.elapsed().as_secs();
                        screen::status(&format!("{label} ... {seconds} s   Esc interrupts"));
                    }
                }
            }
        };
        self.finish();
        waited
    }

    /// Waits for an end. Extensions may take their time with it, so one key gives up waiting, as a signal does
    /// that has not come yet.
    pub(super) async fn see_off(&mut self, label: &str, work: impl Future<Output = ()>) {
        let mut work = pin!(work);
        let was_to_stop = self.stop.is_wanted();
        loop {
            tokio::select! {
                biased;
                () = &mut work => break,
                () = self.stop.wanted(), if !was_to_stop => break,
                Some(key) = self.input.key() => match self.busy_key(Some(key)) {
                    Busy::GoOn => {}
                    Busy::Interrupt | Busy::Gone => break,
                },
                event = self.feed.next() => self.show(&event),
                () = tokio::time::sleep(QUIET) => {
                    if self.input.is_person() {
                        screen::status(&format!("{label} ...   Esc gives up waiting"));
                    }
                }
            }
        }
        self.finish();
    }

    /// Prints what is left of what has happened.
    fn finish(&mut self) {
        while let Some(event) = self.feed.try_next() {
            self.show(&event);
        }
        let rest = self.renderer.finish();
        self.print(&rest);
        let lost = self.feed.lost();
        if lost > 0 {
            self.note(&format!("{lost} events were not shown: there were too many at once"));
        }
        screen::clear_status();
    }

    /// Puts a question to the person. What happens meanwhile is printed afterwards.
    async fn put(&mut self, request: Request) {
        // What led to the question comes before it.
        while let Some(event) = self.feed.try_next() {
            self.show(&event);
        }
        let Input::Person(person) = &mut self.input else { return };
        let mut asking = pin!(request.ask(&mut person.keys));
        loop {
            tokio::select! {
                biased;
                () = self.stop.wanted() => break,
                () = &mut asking => break,
                event = self.feed.next() => {
                    let text = self.renderer.event(&event);
                    // Kept back while the dialog is open; whoever prints next notices that nobody reads.
                    let _ = screen::print(&text);
                }
            }
        }
        self.printed = Instant::now();
    }

    /// What a key means while something is going on.
    fn busy_key(&mut self, key: Option<Key>) -> Busy {
        let Input::Person(person) = &mut self.input else { return Busy::GoOn };
        match key {
            None => {
                self.stop.want();
                Busy::Gone
            }
            Some(Key::Esc | Key::Ctrl('c')) => Busy::Interrupt,
            Some(key) => {
                if let Some(line) = person.editor.hidden_key(&key) {
                    self.note(&format!("queued: {}", one_line(&line, 100)));
                    self.queue.push_back(line);
                }
                Busy::GoOn
            }
        }
    }

    /// Whoever interrupts does not want what was queued either.
    fn forget_queue(&mut self) {
        let count = self.queue.len();
        if count > 0 {
            self.queue.clear();
            self.note(&format!("{count} queued and forgotten"));
        }
    }
}

/// What a key means while something is going on.
enum Busy {
    GoOn,
    Interrupt,
    /// The terminal is gone.
    Gone,
}
