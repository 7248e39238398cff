//! Dialogs: questions to the person, asked on the terminal one after the other.

mod form;
mod permission;
mod talk;

use serde_json::Map;
use serde_json::Value;
use tenon_host::front::Elicitation;
use tenon_host::front::ElicitationAnswer;
use tenon_host::front::Question;
use tenon_host::front::UserAnswer;
use tenon_protocol::permission::PermissionRequest;
use tokio::sync::oneshot;

use self::form::Field;
use self::talk::Entry;
use self::talk::Talk;
use super::keys::Key;
use super::keys::Keys;
use super::screen;
use crate::sanitise::one_line;

/// Something to ask the person, or to show. Whoever asks may lose interest: the question then goes away.
pub enum Request {
    /// Whether something may be done.
    Permission(PermissionRequest, oneshot::Sender<Permit>),
    /// A form to fill in.
    Form(Elicitation, oneshot::Sender<ElicitationAnswer>),
    /// A question.
    Question(Question, oneshot::Sender<UserAnswer>),
    /// A line to show.
    Line(String),
}

/// What the person says about a permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permit {
    /// It may be done, this time.
    Once,
    /// It may be done, and what is like it, in this session.
    Always,
    /// It may not be done, perhaps for a reason.
    No(Option<String>),
}

impl Request {
    /// Asks, and answers whoever wants to know. One that is not answered, because the terminal is gone or the
    /// question was dismissed, is dropped.
    pub async fn ask(self, keys: &mut Keys) {
        let _hold = screen::hold();
        let talk = &mut Talk::new(keys);
        match self {
            Self::Line(line) => screen::write(&format!("{line}\n")),
            Self::Permission(request, mut reply) => {
                let asked = wanted(&mut reply, ask_permission(talk, &request)).await;
                answer(reply, asked);
            }
            Self::Form(form, mut reply) => {
                let asked = wanted(&mut reply, fill_in(talk, &form)).await;
                answer(reply, asked);
            }
            Self::Question(question, mut reply) => {
                let asked = wanted(&mut reply, ask_question(talk, &question)).await;
                answer(reply, asked);
            }
        }
    }
}

/// Asks until there is an answer, or nobody wants one any more.
async fn wanted<Answer>(
    reply: &mut oneshot::Sender<Answer>,
    asking: impl Future<Output = Option<Answer>>,
) -> Option<Answer> {
    tokio::select! {
        answer = asking => answer,
        () = reply.closed() => {
            screen::write("\r\x1b[2K  (not asked any more)\n");
            None
        }
    }
}

fn answer<Answer>(reply: oneshot::Sender<Answer>, answer: Option<Answer>) {
    if let Some(answer) = answer {
        // It was wanted a moment ago.
        let _ = reply.send(answer);
    }
}

/// Asks whether something may be done.
async fn ask_permission(talk: &mut Talk<'_>, request: &PermissionRequest) -> Option<Permit> {
    let shown = permission::describe(request);
    talk.heading(&shown.title);
    shown.details.iter().for_each(|line| talk.detail(line));
    for line in &shown.because {
        talk.remark(line);
    }
    let always = request.subject().map(|subject| permission::in_words(&subject));
    let mut choices = vec!["y  yes, once"];
    let in_session = always.as_ref().map(|always| format!("a  always {always} in this session"));
    choices.extend(in_session.as_deref());
    choices.extend(["n  no", "N  no, and say why"]);
    talk.settle().await;
    talk.choices(&choices);
    let permit = loop {
        match talk.key().await? {
            Key::Char('y' | 'Y') => break Permit::Once,
            Key::Char('a' | 'A') if always.is_some() => break Permit::Always,
            Key::Char('n') | Key::Esc | Key::Ctrl('c' | 'd') => break Permit::No(None),
            Key::Char('N') => match talk.line("why not? ", "").await? {
                Entry::Line(why) => {
                    let why = why.trim().to_owned();
                    break Permit::No(Some(why).filter(|why| !why.is_empty()));
                }
                // Back to the question: whoever changes their mind has not said yes.
                Entry::Cancel | Entry::End => break Permit::No(None),
            },
            _ => {}
        }
    };
    talk.remark(match &permit {
        Permit::Once => "allowed, once",
        Permit::Always => "allowed, in this session",
        Permit::No(_) => "not allowed",
    });
    Some(permit)
}

/// Shows a form.
async fn fill_in(talk: &mut Talk<'_>, form: &Elicitation) -> Option<ElicitationAnswer> {
    Some(filled_in(talk, form).await)
}

async fn filled_in(talk: &mut Talk<'_>, form: &Elicitation) -> ElicitationAnswer {
    let action = |action: &str| ElicitationAnswer { action: action.to_owned(), content: None };
    let from = form.elicitation_source.as_deref().map(|from| format!("{}: ", one_line(from, 80)));
    talk.heading(&format!("{}{}", from.unwrap_or_default(), form.message));
    if form.mode.as_deref() == Some("url") {
        talk.detail(form.url.as_deref().unwrap_or_default());
        return match talk.confirm("y  done there    n  no    Esc  cancel").await {
            Some(true) => action("accept"),
            Some(false) => action("decline"),
            None => action("cancel"),
        };
    }
    let fields = form::fields(form.requested_schema.as_ref().unwrap_or(&Value::Null));
    let mut content = Map::new();
    if fields.is_empty() {
        return match talk.confirm("y  yes    n  no    Esc  cancel").await {
            Some(true) => ElicitationAnswer { content: Some(content), ..action("accept") },
            Some(false) => action("decline"),
            None => action("cancel"),
        };
    }
    talk.remark("Esc cancels, Ctrl-D declines");
    for field in &fields {
        match ask_field(talk, field).await {
            Filled::Value(value) => drop(content.insert(field.name.clone(), value)),
            Filled::Nothing => {}
            Filled::Decline => return action("decline"),
            Filled::Cancel => return action("cancel"),
        }
    }
    ElicitationAnswer { content: Some(content), ..action("accept") }
}

/// What became of a field.
enum Filled {
    Value(Value),
    /// It was left out, and may be.
    Nothing,
    Decline,
    Cancel,
}

/// Asks for a field until what is typed fits.
async fn ask_field(talk: &mut Talk<'_>, field: &Field) -> Filled {
    field.explanation().iter().for_each(|line| talk.detail(line));
    loop {
        match talk.line(&field.prompt(), "").await {
            Some(Entry::Line(typed)) => match field.read(&typed) {
                Ok(Some(value)) => return Filled::Value(value),
                Ok(None) => return Filled::Nothing,
                Err(why) => talk.complain(&why),
            },
            Some(Entry::End) => return Filled::Decline,
            Some(Entry::Cancel) | None => return Filled::Cancel,
        }
    }
}

/// Asks a question; none if the person does not want to answer.
async fn ask_question(talk: &mut Talk<'_>, question: &Question) -> Option<UserAnswer> {
    talk.heading(&question.question);
    for (number, choice) in question.choices.iter().enumerate() {
        talk.detail(&format!("{}) {}", number + 1, one_line(choice, 200)));
    }
    let prompt = match (question.choices.is_empty(), question.allow_freeform) {
        (true, _) => "answer: ",
        (false, true) => "number, or another answer: ",
        (false, false) => "number: ",
    };
    loop {
        match talk.line(prompt, "").await? {
            Entry::Line(typed) => match chosen(question, &typed) {
                Ok(answer) => return Some(answer),
                Err(why) => talk.complain(&why),
            },
            Entry::Cancel | Entry::End => return None,
        }
    }
}

/// The answer that somebody typed, or why it is none.
fn chosen(question: &Question, typed: &str) -> Result<UserAnswer, String> {
    let typed = typed.trim();
    let by_number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let by_name = || question.choices.iter().position(|it| it.eq_ignore_ascii_case(typed));
    let choice = by_number.and_then(|at| question.choices.get(at));
    if let Some(choice) = choice.or_else(|| question.choices.get(by_name()?)) {
        return Ok(UserAnswer { answer: choice.clone(), was_freeform: false });
    }
    if typed.is_empty() {
        return Err("an answer is needed; Esc leaves it open".to_owned());
    }
    if !question.choices.is_empty() && !question.allow_freeform {
        return Err(format!("one of 1 to {} is needed", question.choices.len()));
    }
    Ok(UserAnswer { answer: typed.to_owned(), was_freeform: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(choices: &[&str], allow_freeform: bool) -> Question {
        Question {
            question: "which?".to_owned(),
            choices: choices.iter().map(|&choice| choice.to_owned()).collect(),
            allow_freeform,
        }
    }

    fn answer(answer: &str, was_freeform: bool) -> Result<UserAnswer, String> {
        Ok(UserAnswer { answer: answer.to_owned(), was_freeform })
    }

    #[test]
    fn choices_are_made_by_number_or_name() {
        let question = question(&["Red", "Blue"], false);
        assert_eq!(chosen(&question, "2"), answer("Blue", false));
        assert_eq!(chosen(&question, " red "), answer("Red", false));
        for typed in ["0", "3", "green", ""] {
            assert!(chosen(&question, typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn another_answer_counts_where_it_may() {
        assert_eq!(chosen(&question(&["Red"], true), "green"), answer("green", true));
        assert_eq!(chosen(&question(&[], false), "42"), answer("42", true));
        assert!(chosen(&question(&[], true), "  ").is_err());
    }
}
