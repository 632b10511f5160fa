;;; kode.el --- The coding agent kode-ls  -*- lexical-binding: t; -*-

;; Author: the kode-ls authors
;; Version: 0.2.0
;; Package-Requires: ((emacs "29.1"))
;; Keywords: tools, languages
;; URL: https://github.com/kode-ls/kode-ls
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; kode-ls is a coding agent that is a language server.  This package starts it by Eglot or lsp-mode and adds the commands
;; that neither has: `kode-ask', `kode-permission', `kode-allow', `kode-deny', `kode-diff', `kode-keep', `kode-undo' and
;; `kode-cancel'.
;;
;;   (require 'kode)
;;   (kode-setup 'python-mode 'rust-mode)
;;   (keymap-global-set "C-c k" kode-map)
;;
;; Rule: a command only reads state and sends an intent; the server decides.  Nothing here opens a window by itself, and a
;; prompt is answered only by a command or by a key in its own buffer.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'subr-x)
(require 'url-util)

(defvar eglot-server-programs)
(defvar eglot--servers-by-project)
(defvar lsp-language-id-configuration)
(defvar lsp--cur-workspace)
(declare-function eglot-current-server "eglot")
(declare-function eglot-ensure "eglot")
(declare-function lsp "lsp-mode")
(declare-function lsp-register-client "lsp-mode")
(declare-function lsp-stdio-connection "lsp-mode")
(declare-function make-lsp-client "lsp-mode")
(declare-function lsp-session "lsp-mode")
(declare-function lsp-session-folder->servers "lsp-mode")
(declare-function lsp-workspaces "lsp-mode")
(declare-function lsp--client-server-id "lsp-mode")
(declare-function lsp--workspace-client "lsp-mode")
(declare-function lsp--workspace-status "lsp-mode")
(declare-function lsp-request "lsp-mode")
(declare-function lsp-request-async "lsp-mode")

(defgroup kode nil
  "The coding agent kode-ls."
  :group 'tools)

(defcustom kode-command '("kode-ls")
  "The program of the server and its arguments."
  :type '(repeat string))

(defcustom kode-client 'eglot
  "The LSP client that starts the server.
Eglot has one server for a buffer; lsp-mode can have Kode beside others."
  :type '(choice (const eglot) (const lsp-mode)))

(defcustom kode-init-options nil
  "The server's `initializationOptions', as a property list.
For example (:profile \"demo\"), which needs no key."
  :type 'plist)

(define-derived-mode kode-chat-mode text-mode "Kode"
  "A conversation with Kode in a file whose name ends in `.kode.md'.")

(defconst kode--documents '("\\.kode\\.md\\'" . kode-chat-mode)
  "The names of chat documents and their mode.")

(defun kode--claim-documents ()
  "Have chat documents open in their own mode, not in one for Markdown."
  (setq auto-mode-alist (cons kode--documents (delete kode--documents auto-mode-alist))))

(kode--claim-documents)
;; It puts its own names first when it is loaded, and lsp-mode loads it.
(with-eval-after-load 'markdown-mode (kode--claim-documents))

;;; The server

(defun kode--setup-eglot (modes)
  "Have Eglot start the server in buffers of MODES."
  (require 'eglot)
  (let ((contact (append kode-command
                         (and kode-init-options (list :initializationOptions kode-init-options)))))
    (add-to-list 'eglot-server-programs (cons modes contact)))
  (dolist (mode modes)
    (add-hook (intern (format "%s-hook" mode)) #'eglot-ensure)))

(defconst kode--actions
  '("kode.ask" "kode.send" "kode.cancel" "kode.allow" "kode.deny" "kode.answer" "kode.acceptEdits"
    "kode.rejectEdits" "kode.keepEdits" "kode.undoEdits" "kode.revertEdits")
  "The commands of the server that code actions run.")

(defun kode--lsp-actions ()
  "Return the functions by which lsp-mode runs our code actions, by command."
  (let ((table (make-hash-table :test #'equal)))
    (dolist (name kode--actions table)
      (puthash name
               (lambda (action) (kode--lsp-send name (kode--get action :arguments)))
               table))))

(defun kode--setup-lsp-mode (modes)
  "Have lsp-mode start the server in buffers of MODES, beside others."
  (require 'lsp-mode)
  (add-to-list 'lsp-language-id-configuration '(kode-chat-mode . "markdown"))
  (lsp-register-client
   (make-lsp-client :new-connection (lsp-stdio-connection (lambda () kode-command))
                    :major-modes modes
                    :server-id 'kode
                    :add-on? t
                    :action-handlers (kode--lsp-actions)
                    :initialization-options (lambda () kode-init-options)))
  (dolist (mode modes)
    (add-hook (intern (format "%s-hook" mode)) #'lsp)))

;;;###autoload
(defun kode-setup (&rest modes)
  "Start the server in buffers of MODES, and in chat documents."
  (let ((all (append modes '(kode-chat-mode))))
    (if (eq kode-client 'lsp-mode)
        (kode--setup-lsp-mode all)
      (kode--setup-eglot all))))

(defvar kode--last nil
  "The Eglot server that was used last, for buffers that no server manages.")

(defun kode--is-server (server)
  "Whether the Eglot SERVER is a running Kode."
  (and (jsonrpc-running-p server)
       (string-match-p "kode-ls"
                       (string-join (process-command (jsonrpc--process server)) " "))))

(defun kode--eglot-server ()
  "The Eglot server of this buffer, else the one used last, else any."
  (let ((here (and (fboundp 'eglot-current-server) (eglot-current-server))))
    (setq kode--last
          (cl-find-if #'kode--is-server
                      (append (and here (list here))
                              (and kode--last (list kode--last))
                              (and (boundp 'eglot--servers-by-project)
                                   (apply #'append (hash-table-values eglot--servers-by-project))))))))

(defun kode--lsp-workspace ()
  "The lsp-mode workspace of Kode: the one of this buffer, else any that runs."
  (cl-find-if (lambda (workspace)
                (and (eq (lsp--client-server-id (lsp--workspace-client workspace)) 'kode)
                     (eq (lsp--workspace-status workspace) 'initialized)))
              (append (lsp-workspaces)
                      (apply #'append (hash-table-values (lsp-session-folder->servers (lsp-session)))))))

(defun kode--running (server)
  "Return SERVER, or signal that Kode is not running when it is nil."
  (or server (user-error "Kode is not running: open a file of a mode given to `kode-setup'")))

(defun kode--request (method params)
  "Send a request of METHOD with PARAMS and return its result."
  (if (eq kode-client 'lsp-mode)
      ;; lsp-mode asks all servers of a buffer otherwise, and none from the buffer of a prompt.
      (let ((lsp--cur-workspace (kode--running (kode--lsp-workspace))))
        (lsp-request (substring (symbol-name method) 1) params))
    (jsonrpc-request (kode--running (kode--eglot-server)) method params :timeout 30)))

(defun kode--lsp-send (name arguments)
  "Run the server's command NAME with a vector of ARGUMENTS, without waiting.
When lsp-mode waits for an answer, it loses the messages that arrive
together with it: the first edit of a chat document for example."
  (let ((lsp--cur-workspace (kode--running (kode--lsp-workspace))))
    (lsp-request-async "workspace/executeCommand" (list :command name :arguments arguments) #'ignore
                       :mode 'detached
                       :error-handler (lambda (problem) (message "Kode: %s" (kode--get problem :message))))))

(defun kode--command (name &optional argument)
  "Run the server's command NAME, with a property list ARGUMENT."
  (let ((arguments (if argument (vector argument) [])))
    (if (eq kode-client 'lsp-mode)
        (kode--lsp-send name arguments)
      (kode--request :workspace/executeCommand (list :command name :arguments arguments)))))

(defun kode--get (object key)
  "The value of KEY in OBJECT, which is a property list or a hash table."
  (if (hash-table-p object)
      (gethash (substring (symbol-name key) 1) object)
    (plist-get object key)))

;;; Asking

(defun kode--uri ()
  "The URI of the file of this buffer; nil when it has none."
  (and buffer-file-name
       (concat "file://" (url-hexify-string (file-truename buffer-file-name) url-path-allowed-chars))))

(defun kode--path (uri)
  "The path of a file URI."
  (decode-coding-string (url-unhex-string (string-remove-prefix "file://" uri)) 'utf-8))

(defun kode--position (at)
  "The LSP position AT, with columns in UTF-16."
  (save-excursion
    (goto-char at)
    (let ((before (buffer-substring-no-properties (line-beginning-position) at)))
      (list :line (1- (line-number-at-pos nil t))
            :character (/ (length (encode-coding-string before 'utf-16-be)) 2)))))

(defun kode--place ()
  "The document of this buffer, with the region where it is active."
  (when buffer-file-name
    (append
     (list :uri (kode--uri))
     (when (use-region-p)
       (list :range (list :start (kode--position (region-beginning))
                          :end (kode--position (region-end))))))))

;;;###autoload
(defun kode-ask (text)
  "Ask Kode TEXT, or tell it what to do.
With an active region, the region goes with it."
  (interactive "sAsk Kode: ")
  (kode--command "kode.ask"
                 (append (list :text text) (and (use-region-p) (kode--place)))))

;;;###autoload
(defun kode-cancel ()
  "Cancel the running turn."
  (interactive)
  (kode--command "kode.cancel"))

;;; Permission prompts

(defconst kode--scopes
  '(("once" . "Allow once")
    ("session" . "Allow for this session")
    ("project" . "Always allow in this project")
    ("user" . "Always allow everywhere"))
  "The answers that allow, by their scopes.")

(defun kode--prompts ()
  "Return the permission requests that wait, the oldest first."
  (append (kode--get (kode--request :agent/permission/list (make-hash-table)) :permissions) nil))

(defun kode--oldest ()
  "Return the oldest prompt that waits."
  (or (car (kode--prompts)) (user-error "Kode waits for no permission")))

(defun kode--answers (prompt)
  "The answers to PROMPT, a list of (LABEL . SCOPE).
Their order is that of every client; the first denies and has no scope."
  (cons '("Deny" . nil)
        (mapcar (lambda (scope)
                  (cons (or (cdr (assoc scope kode--scopes)) scope) scope))
                (append (kode--get prompt :scopes) nil))))

(defun kode--answer (prompt scope &optional reason)
  "Answer PROMPT: allow it for SCOPE, or deny it when that is nil, with a REASON."
  (let ((argument (list :permissionId (kode--get prompt :permissionId))))
    (when scope (setq argument (plist-put argument :scope scope)))
    (when (and reason (not (string-empty-p reason)))
      (setq argument (plist-put argument :feedback reason)))
    (kode--command (if scope "kode.allow" "kode.deny") argument)))

;;;###autoload
(defun kode-allow (choose)
  "Allow the oldest prompt once.
With a prefix argument CHOOSE, choose for how long."
  (interactive "P")
  (let ((prompt (kode--oldest)))
    (if (not choose)
        (kode--answer prompt "once")
      (let* ((answers (cdr (kode--answers prompt)))
             (label (completing-read (format "%s: " (kode--get prompt :title)) answers nil t)))
        (kode--answer prompt (cdr (assoc label answers)))))))

;;;###autoload
(defun kode-deny (ask)
  "Deny the oldest prompt.
With a prefix argument ASK, ask for a reason."
  (interactive "P")
  (let ((prompt (kode--oldest)))
    (kode--answer prompt nil
                  (and ask (read-string (format "%s: what instead? " (kode--get prompt :title)))))))

(defvar-local kode--prompt nil
  "The prompt that this buffer shows.")

(defvar kode-prompt-mode-map
  (let ((map (make-sparse-keymap)))
    (dotimes (number 9)
      (keymap-set map (number-to-string (1+ number)) #'kode-prompt-answer))
    (keymap-set map "q" #'quit-window)
    map)
  "The keys of a prompt.")

(define-derived-mode kode-prompt-mode special-mode "Kode Prompt"
  "A permission prompt of Kode.  Its number keys answer it.")

(defun kode-prompt-answer ()
  "Give the answer of the number that was typed."
  (interactive)
  (let* ((number (- last-command-event ?0))
         (answer (nth (1- number) (kode--answers kode--prompt))))
    (unless answer (user-error "There is no answer %d" number))
    (kode--answer kode--prompt (cdr answer))
    (quit-window t)
    (message "Kode: %s" (car answer))))

(defun kode--prompt-text (prompt)
  "The text of PROMPT: its title, its answers, and what exactly would be done."
  (let ((number 0))
    (concat
     (kode--get prompt :title) "\n\n"
     (mapconcat (lambda (answer)
                  (format "%d  %s" (setq number (1+ number)) (car answer)))
                (kode--answers prompt) "\n")
     "\n\n" (kode--get prompt :text) "\n")))

;;;###autoload
(defun kode-permission ()
  "Show the oldest prompt in a buffer whose number keys answer it."
  (interactive)
  (let ((prompt (kode--oldest)))
    (pop-to-buffer (get-buffer-create "*Kode prompt*"))
    (kode-prompt-mode)
    (setq kode--prompt prompt)
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert (kode--prompt-text prompt))
      (goto-char (point-min)))
    (when (equal (kode--get (kode--get prompt :preview) :type) "diff")
      (setq-local font-lock-defaults '(diff-font-lock-keywords t))
      (require 'diff-mode)
      (font-lock-ensure))))

;;; Changes

(defun kode--edits ()
  "Return the edits that wait for a decision."
  (append (kode--get (kode--request :workspace/executeCommand '(:command "kode.listEdits" :arguments []))
                     :edits)
          nil))

(defun kode--here (edits)
  "Return the change of EDITS that is nearest to point in this buffer."
  (let ((file (and buffer-file-name (file-truename buffer-file-name)))
        (line (line-number-at-pos nil t)))
    (car (sort (cl-remove-if-not
                (lambda (edit) (equal (kode--path (kode--get edit :uri)) file))
                edits)
               (lambda (a b)
                 (< (abs (- (kode--get a :line) line)) (abs (- (kode--get b :line) line))))))))

(defun kode--decide (proposed applied whole-file)
  "Run the command PROPOSED or APPLIED on the change nearest to point.
WHOLE-FILE means all changes of its file."
  (let ((edit (or (kode--here (kode--edits)) (user-error "Kode has changed nothing here"))))
    (kode--command (if (equal (kode--get edit :state) "proposed") proposed applied)
                   (if whole-file
                       (list :uri (kode--get edit :uri))
                     (list :hunkIds (vector (kode--get edit :hunkId)))))))

;;;###autoload
(defun kode-keep (file)
  "Keep the change nearest to point, or with a prefix argument all of the FILE."
  (interactive "P")
  (kode--decide "kode.acceptEdits" "kode.keepEdits" file))

;;;###autoload
(defun kode-undo (file)
  "Undo the change nearest to point, or with a prefix argument all of the FILE."
  (interactive "P")
  (kode--decide "kode.rejectEdits" "kode.undoEdits" file))

;;;###autoload
(defun kode-diff ()
  "Show a diff of the undecided edits of Kode in this buffer.
While a permission request for an edit waits, show that instead."
  (interactive)
  (let ((prompt (car (kode--prompts))))
    (if (and prompt (equal (kode--get (kode--get prompt :preview) :type) "diff"))
        (kode-permission)
      (let* ((edit (or (kode--here (kode--edits)) (user-error "Kode has changed nothing here")))
             (baseline (kode--request :agent/document/baseline
                                      (list :sessionId (kode--get edit :sessionId)
                                            :uri (kode--get edit :uri))))
             (current (current-buffer))
             (before (get-buffer-create (format " *%s without Kode*" (buffer-name)))))
        (with-current-buffer before
          (erase-buffer)
          (insert (kode--get baseline :text)))
        (diff-buffers before current)))))

;;; Keys

;;;###autoload (autoload 'kode-map "kode" nil t 'keymap)
(defvar kode-map
  (let ((map (make-sparse-keymap)))
    (keymap-set map "k" #'kode-ask)
    (keymap-set map "c" #'kode-cancel)
    (keymap-set map "p" #'kode-permission)
    (keymap-set map "a" #'kode-allow)
    (keymap-set map "d" #'kode-deny)
    (keymap-set map "=" #'kode-diff)
    (keymap-set map "y" #'kode-keep)
    (keymap-set map "u" #'kode-undo)
    map)
  "The commands of Kode, for a prefix key of the user's choice.")
(fset 'kode-map kode-map)

(provide 'kode)

;;; kode.el ends here
