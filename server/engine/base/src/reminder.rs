//! The envelope of texts that the model reads but the user did not write.
//!
//! Rule: quoted text cannot close the envelope early.

/// A text that the model gets with a prompt, that the user did not type. What it quotes cannot end it early.
#[must_use]
pub fn reminder(text: &str) -> String {
    let text = text.replace("</system-reminder", "<\u{200b}/system-reminder");
    format!("<system-reminder>\n{text}\n</system-reminder>")
}
