import{a as ht,c as Ae,f as Oe,g as Te,h as qe,i as Ie,j as Re,k as Le,l as Me,m as Ne,n as dt,o as Z,p as De,t as je}from"./chunk-X34QEUFZ.js";import{a as J,b as ye,c as we}from"./chunk-LWXLV7PY.js";import{$a as Ee,B as z,Ba as _e,C as ne,D as A,E as le,Ja as X,Ka as ge,O as ce,Oa as be,P as he,Pa as $e,Sa as ve,T as de,U as ue,V as P,W as y,Wa as ke,Xa as xe,Y as f,Ya as Se,Z as pe,Za as U,_ as I,ab as B,b as ie,ba as O,c as s,ca as w,d as M,e as d,ea as p,fa as me,fb as Ce,h as K,ha as a,hb as Q,i as H,ia as h,j as Y,ja as R,m as $,na as b,oa as S,pa as x,ra as _,sa as u,t as oe,ta as T,u as C,ua as G,va as fe,w as ae,wa as q,x as j,z as re}from"./chunk-RXKXRVUK.js";var ut=6,pt=class extends _{static properties={_entry:{state:!0},_wanted:{state:!0}};constructor(){super(),this._entry=null,this._take=null,this._wanted="",this._origin=null}get _box(){return this.firstElementChild}render(){let t=ht(this._wanted);return a`<div
      class="menu emoji-picker"
      popover="auto"
      role="dialog"
      aria-label=${this._entry?s("React"):s("Emoji")}
      data-testid="emoji-picker"
      @keydown=${e=>this._key(e)}
    >
      <form class="emoji-form" @submit=${e=>this._submit(e)}>
        <input
          type="search"
          class="field"
          name="emoji"
          aria-label=${s("Find an emoji")}
          placeholder=${s("Find an emoji")}
          maxlength="32"
          autocomplete="off"
          .value=${this._wanted}
          @input=${e=>{this._wanted=e.target.value}}
        />
      </form>
      <div class="emoji-grid">
        ${t.map(({emoji:e,name:i})=>a`<button
              type="button"
              class="emoji"
              aria-label=${i.replaceAll("_"," ")}
              title=${`:${i}:`}
              aria-pressed=${this._entry?String(this._isOwn(e)):h}
              @click=${()=>this._give(e)}
            >
              ${e}
            </button>`)}
      </div>
      ${t.length?h:a`<p class="palette-none" role="status">
              ${s("No matches. Press Enter to use what you typed.")}
            </p>`}
    </div>`}async open(t,e,i=null){[this._origin,this._entry,this._take,this._wanted]=[t,e,i,""],await this.updateComplete;let o=this._box;o.showPopover(),Q(o,t),o.querySelector(matchMedia("(pointer: fine)").matches?"input":"button")?.focus({preventScroll:!0})}_isOwn(t){return this._entry?.reactions.some(e=>e.emoji===t&&e.own)??!1}_key(t){if(t.key==="Escape"){t.stopPropagation(),t.preventDefault(),this._close();return}let e=t.target;if(t.key==="Tab"){let m=Array.from(this.querySelectorAll("button, input")),[g,v]=t.shiftKey?[m[0],m[m.length-1]]:[m[m.length-1],m[0]];if(e!==g)return;t.preventDefault(),v.focus();return}let i=Array.from(this.querySelectorAll(".emoji")),o=i.indexOf(e),n=getComputedStyle(this).direction==="rtl"?-1:1,l={ArrowLeft:-n,ArrowRight:n,ArrowUp:-ut,ArrowDown:ut}[t.key];if(!l||o===-1&&t.key!=="ArrowDown")return;t.preventDefault(),((o===-1?i[0]:i[o+l])??(l===-ut?this.querySelector("input"):e))?.focus()}_submit(t){t.preventDefault();let e=this._wanted.trim(),i=ht(e)[0]?.emoji??e;e&&this._give(i)}_give(t){let{_entry:e,_origin:i,_take:o}=this;this._close(),o?.(t),e&&i&&X(i,()=>ge(e,t,!this._isOwn(t)))}_close(){this._box.hidePopover(),this._origin?.focus({preventScroll:!0})}};customElements.define("emoji-picker",pt);var tt=class extends _{static properties={_entry:{state:!0},_texts:{state:!0},_problem:{state:!0}};constructor(){super(),this._entry=null,this._origin=null,this._texts=null,this._problem=""}get _dialog(){return this.querySelector("dialog")}async _show(t,e){this._origin=t,this._entry=e,this._problem="",await this.updateComplete,this._dialog.showModal()}_close(){this._dialog.close()}_closed(){this._origin?.isConnected||document.querySelector("message-list .log")?.focus({preventScroll:!0})}_frame(t,e,i){return a`<dialog
      class="dialog"
      aria-labelledby="${this.localName}-title"
      data-testid=${this.localName}
      @close=${()=>this._closed()}
    >
      <div class="dialog-form">
        <header>
          <h2 id="${this.localName}-title">${t}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${s("Close")}
            title=${s("Close")}
            @click=${()=>this._close()}
          >
            ${u("close")}
          </button>
        </header>
        <div class="dialog-body">
          ${e}${this._problem?a`<p class="dialog-error" role="alert">${this._problem}</p>`:""}
        </div>
        ${i}
      </div>
    </dialog>`}},mt=class extends tt{open(t,e){this._show(t,e)}render(){let t=this._entry;return this._frame(s("Delete message?"),a`<p>
        ${t&&!_e(t)?d(s("This deletes %(name)s's message and its files for everyone. Agents will no longer see it either."),{name:t.name}):s("This deletes your message and its files for everyone. Agents will no longer see it either.")}
      </p>`,a`<footer>
        <button type="button" class="button" @click=${()=>this._close()}>
          ${s("Cancel")}</button
        ><button
          type="button"
          class="button button-danger"
          data-testid="delete-now"
          @click=${()=>this._delete()}
        >
          ${s("Delete")}
        </button>
      </footer>`)}_delete(){let{_entry:t,_origin:e}=this;this._close(),t&&e&&x("undo-bar").removeLater(t,e)}};customElements.define("delete-dialog",mt);var ft=class extends tt{async open(t,e){this._texts=null,await this._show(t,e);try{this._texts=(await $e(e)).reverse()}catch(i){if(!$(i))throw i;this._problem=i.message}}render(){let e=(this._texts??[]).map((i,o)=>a`<li>
          <p class="quiet">
            ${o===0?s("Now"):bs(i)} ·
            <time datetime=${i.created_at}>${j(Date.parse(i.created_at))}</time>
          </p>
          <div class="revision-text" dir="auto">${i.content}</div>
        </li>`);return this._frame(s("Versions of the message"),this._texts||this._problem?a`<ol class="revisions" data-testid="revisions-list">
            ${e}
          </ol>`:q(s("Loading")),"")}};customElements.define("revisions-dialog",ft);var bs=({revision:r})=>r===0?s("As it was sent"):d(s("Version %(n)s"),{n:r+1});var F=class extends _{static properties={_subject:{state:!0}};constructor(){super(),this._subject=null,this.label="",this.testId="",this._button=null,this._origin=null}actions(t){return[]}render(){let t=this._subject;return a`<div
      role="menu"
      class="menu"
      popover="auto"
      aria-label=${this.label}
      data-testid=${this.testId}
      @keydown=${e=>this._key(e)}
      @toggle=${e=>this._toggled(e)}
    >
      ${t===null?h:this.actions(t).map(e=>this._item(e,t))}
    </div>`}async open(t,e){this._button=t,this._subject=e;let i=t.closest("chat-message");this._origin=i!==null&&i===document.activeElement?i:t,await this.updateComplete;let o=this._menu;o.showPopover(),Q(o,t),this._items[0].focus()}get _menu(){return this.firstElementChild}get _items(){return Array.from(this.querySelectorAll("[role=menuitem]"))}_item(t,e){return a`<button
      type="button"
      role="menuitem"
      class="menu-item ${t.isDangerous?"is-dangerous":""}"
      data-testid=${t.name}
      @click=${()=>this._choose(t,e)}
    >
      ${u(t.icon)}<span>${t.label(e)}</span>
    </button>`}_toggled({newState:t}){this._button?.setAttribute("aria-expanded",String(t==="open"))}_key(t){let e=this._items,i=e.indexOf(document.activeElement),o={ArrowDown:i+1,ArrowUp:i-1,Home:0,End:e.length-1}[t.key];if(t.key==="Tab"&&this._close(),t.key==="Escape"&&(t.stopPropagation(),t.preventDefault(),this._close()),o!==void 0)t.preventDefault(),e[(o+e.length)%e.length].focus();else if(t.key.length===1&&!t.ctrlKey&&!t.metaKey&&!t.altKey){let n=t.key.toLowerCase();[...e.slice(i+1),...e].find(l=>(l.textContent??"").trim().toLowerCase().startsWith(n))?.focus()}}_close(){this._menu.hidePopover(),this._origin?.focus({preventScroll:!0})}_choose(t,e){this._close(),this._origin&&t.run(e,this._origin)}};var _t=class extends F{label=s("Message");testId="message-menu";actions(t){return we(t)}};customElements.define("message-menu",_t);var $s=6e3,gt=class extends _{static properties={_entry:{state:!0}};constructor(){super(),this._entry=null,this._origin=null,this._timer=0,this._onLeave=()=>{this._remove()}}connectedCallback(){super.connectedCallback(),addEventListener("pagehide",this._onLeave)}disconnectedCallback(){super.disconnectedCallback(),removeEventListener("pagehide",this._onLeave)}render(){return this._entry?a`<div
      class="undo-bar"
      role="group"
      aria-label=${s("Message deleted")}
      data-testid="undo-bar"
    >
      <span>${s("Message deleted")}</span>
      <button type="button" class="button" data-testid="undo" @click=${()=>this._undo()}>
        ${s("Undo")}
      </button>
    </div>`:h}async removeLater(t,e){await this._remove(),[this._entry,this._origin]=[t,e],this._hide(t.id,!0),this._timer=window.setTimeout(()=>this._remove(),$s),b(s("Message deleted. Press Undo to keep it.")),await this.updateComplete,this.querySelector("button")?.focus({preventScroll:!0})}_undo(){let{_entry:t,_origin:e}=this;this._end(),t&&(this._hide(t.id,!1),b(s("The message is kept.")),(e?.isConnected?e:document.querySelector("message-list .log"))?.focus({preventScroll:!0}))}async _remove(){let{_entry:t,_origin:e}=this;if(!t||!e)return;let i=this.contains(document.activeElement);this._end(),i&&document.querySelector("message-list .log")?.focus({preventScroll:!0}),await X(e,()=>be(t))||this._hide(t.id,!1)}_end(){clearTimeout(this._timer),[this._entry,this._origin]=[null,null]}_hide(t,e){for(let i of document.querySelectorAll(`chat-message[data-id="${CSS.escape(t)}"]`))i.isRemoved=e;O.dispatch({type:"removing",id:e?t:""})}};customElements.define("undo-bar",gt);var E=class extends _{static properties={_error:{state:!0},_isBusy:{state:!0}};constructor(){super(),this._error="",this._isBusy=!1}get _dialog(){return this.querySelector("dialog")}async _show(){this._error="",this._isBusy=!1,await this.updateComplete,this._dialog.showModal()}_close(){this._dialog.close()}_head(t,e){return a`<header>
      <h2 id=${t}>${e}</h2>
      <button
        type="button"
        class="icon-button"
        aria-label=${s("Close")}
        title=${s("Close")}
        @click=${()=>this._close()}
      >
        ${u("close")}
      </button>
    </header>`}_problem(){return this._error?a`<p class="dialog-error" role="alert">${this._error}</p>`:h}async _attempt(t){let e=document.activeElement;this._error="",this._isBusy=!0;try{await t()}catch(o){if(!$(o))throw o;this._error=o.message}finally{this._isBusy=!1}await this.updateComplete;let i=document.activeElement;e instanceof HTMLElement&&this._dialog.open&&this.contains(e)&&i!==e&&(i===document.body||i?.contains(e))&&e.focus()}};var bt=class extends E{static properties={_chat:{state:!0}};constructor(){super(),this._chat=null}async open(t){this._chat=t,await this._show()}render(){let t=this._chat;if(!t)return a`<dialog class="dialog"></dialog>`;let e=p.others(t).filter(({kind:l})=>l==="user"),i=l=>new Intl.ListFormat(document.documentElement.lang).format(e.filter(({takes_calls:c})=>(c??!0)===l).map(({name:c})=>C.nameOf(c))),[o,n]=[i(!0),i(!1)];return a`<dialog class="dialog" aria-labelledby="call-title" data-testid="call-dialog">
      <div class="dialog-form">
        ${this._head("call-title",s("Call everyone?"))}
        <div class="dialog-body">
          <p>${d(s("This will ring %(names)s."),{names:o})}</p>
          ${n?a`<p class="quiet" data-testid="not-called">
                  ${d(s("It won't ring for %(names)s: calls don't reach other servers."),{names:n})}
                </p>`:h}
        </div>
        <footer>
          <button type="button" class="button" @click=${()=>this._close()}>
            ${s("Cancel")}
          </button>
          <button
            type="button"
            class="button button-primary"
            data-testid="call-everyone"
            @click=${()=>this._call(t)}
          >
            ${u("phone")}${s("Call")}
          </button>
        </footer>
      </div>
    </dialog>`}_call(t){this._close(),me.start(t.id)}};customElements.define("call-dialog",bt);var $t=class extends F{label=s("Chat");testId="chat-menu";actions(t){return Ae.filter(({isOffered:e})=>!e||e(t))}};customElements.define("chat-menu",$t);var ys={mention:s("Answers when mentioned"),always:s("Answers every message"),keyword:s("Answers mentions and keywords"),never:s("Listens only")},ws={owner:s("owner"),admin:s("admin")},yt=class extends _{static properties={chatId:{attribute:!1}};constructor(){super(),this.chatId="",this._onChats=()=>this.requestUpdate(),this._works=new ue(this,O,t=>t.works)}connectedCallback(){super.connectedCallback(),this.setAttribute("role","complementary"),this.setAttribute("aria-label",s("Members")),p.addEventListener("change",this._onChats)}disconnectedCallback(){super.disconnectedCallback(),p.removeEventListener("change",this._onChats)}render(){let t=p.get(this.chatId);if(!t)return"";let e=i=>t.participants.filter(o=>o.kind===i);return a` <div class="panel-head">
        <h2>${s("Members")}</h2>
        <button
          type="button"
          class="icon-button"
          aria-label=${s("Close members")}
          title=${s("Close members")}
          @click=${()=>this._fire("toggle-members")}
        >
          ${u("close")}
        </button>
      </div>
      <div class="panel-body">
        ${t.description?a`<p dir="auto">${t.description}</p>`:""}
        ${t.home?a`<p class="quiet" data-testid="chat-home">
                ${d(s("This chat is hosted on %(server)s. Members, agents and settings are managed there. Threads and calls are only available there."),{server:t.home})}
              </p>`:""}
        ${t.agents_quiet?a`<p class="quiet" data-testid="agents-quiet">
                ${s("Agents paused.")}
                ${t.home?"":a`<button
                        type="button"
                        class="link"
                        @click=${()=>this._quiet(t,!1)}
                      >
                        ${s("Resume agents")}
                      </button>`}
              </p>`:""}
        ${this._group(s("People"),e("user"))}${this._group(s("Agents"),e("agent"))}${this._payer(t)}
        ${t.home?"":a`<button
                type="button"
                class="button"
                @click=${()=>this._fire("add-members",t)}
              >
                ${u("add")}${s("Add people or agents")}
              </button>`}
        <button
          type="button"
          class="button"
          data-testid="share-button"
          @click=${()=>this._fire("share-chat",t)}
        >
          ${u("link")}${s("Invite, share, download")}
        </button>
        ${!t.home&&!t.agents_quiet&&e("agent").length?a`<button
                type="button"
                class="button"
                data-testid="quiet-agents"
                title=${s("No agent answers until a member resumes them")}
                @click=${()=>this._quiet(t,!0)}
              >
                ${u("stop")}${s("Pause all agents")}
              </button>`:""}
        <button
          type="button"
          class="button"
          data-testid="chat-settings-button"
          @click=${()=>this._fire("chat-settings",t)}
        >
          ${u("edit")}${s("Chat settings")}
        </button>
      </div>`}_group(t,e){return e.length===0?"":a`<section>
      <h3>${t}</h3>
      <ul class="member-list">
        ${R(e,({kind:i,id:o})=>`${i} ${o}`,i=>this._member(i))}
      </ul>
    </section>`}_payer(t){if(!t.participants.some(i=>i.pricing))return"";let e=a`<button
      type="button"
      class="button payer-button"
      @click=${()=>this._fire("set-payer",t)}
    >
      ${u("wallet")}${s("Payment settings")}
    </button>`;return a`<section data-testid="payer">
      <h3>${s("Who pays")}</h3>
      <p>${B[t.payer??""]}</p>
      ${Ee(t)?e:""}
    </section>`}_member(t){let e=t.kind==="user"&&String(t.id)===y.id,i=t.kind==="agent"?[ys[t.trigger??""],U(t.pricing),t.budget&&d(t.budget_period==="total"?s("Budget: $%(amount)s in total"):s("Budget: $%(amount)s a day"),{amount:t.budget})]:[[t.display_name&&`@${t.name}`,t.online||e?s("Online"):s("Offline"),ws[t.role],t.status_text].filter(Boolean).join(" · ")];return a`<li>
      ${T(t.name,t.kind,t.online||e)}<span class="picker-text"
        ><b dir="auto"
          ><button
            type="button"
            class="name-button"
            data-testid="open-profile"
            @click=${()=>this._profile(t)}
          >
            ${t.kind==="user"?C.nameOf(t.name):t.name}${e?` ${s("(you)")}`:""}
          </button></b
        >${t.kind==="agent"?this._work(t):h}${i.filter(Boolean).map(o=>a`<small>${o}</small>`)}</span
      >
      <button
        type="button"
        class="icon-button"
        aria-label=${d(s("Settings for %(name)s"),{name:t.name})}
        title=${d(s("Settings for %(name)s"),{name:t.name})}
        @click=${()=>this._fire("open-member",{chat:p.get(this.chatId),member:t})}
      >
        ${u("more")}
      </button>
    </li>`}_work({name:t,online:e}){let i=this._works.value.find(({agent:l})=>l===t);if(!i)return a`<small data-testid="agent-state" data-state=${e?"ready":"offline"}
        >${e?s("Ready"):s("Offline: can't answer right now")}</small
      >`;let o=Ce(i,l=>this._nameOf(l)),n=i.kind==="tool"&&i.percent!==null?a`<progress max="100" .value=${i.percent} aria-label=${o}></progress>`:h;return a`<small class="agent-work" data-testid="agent-state" data-state=${i.kind}
      >${o}${n}</small
    >`}_nameOf(t){let e=p.get(this.chatId)?.participants.find(({kind:i,id:o})=>i==="user"&&String(o)===t);return e?C.nameOf(e.name):""}async _quiet(t,e){try{await f.send("PATCH",`/chats/${encodeURIComponent(t.id)}`,{agents_quiet:e}),await p.reload(t.id),b(e?s("Agents paused."):s("Agents resumed."))}catch(i){if(!$(i))throw i;b(i.message)}}_profile({kind:t,name:e}){this.dispatchEvent(new CustomEvent("open-profile",{bubbles:!0,detail:{kind:t,name:e}}))}_fire(t,e){this.dispatchEvent(new CustomEvent(t,{bubbles:!0,detail:e}))}};customElements.define("members-panel",yt);var wt=class extends _{static properties={rootId:{attribute:!1},_problem:{state:!0}};constructor(){super(),this.rootId="",this._chatId="",this._opened=0,this._problem=null,this._listeners=new AbortController,this._history=new Re(w,f),this._announcements=new Ie}connectedCallback(){super.connectedCallback(),this.setAttribute("role","complementary"),this.setAttribute("aria-label",s("Thread")),this.addEventListener("show-message",t=>this.showMessage(t.detail)),this.addEventListener("say",t=>this._composer?.say(t.detail)),p.addEventListener("change",()=>this.requestUpdate()),document.addEventListener("visibilitychange",()=>this._markRead()),addEventListener("focus",()=>this._markRead())}render(){if(!this.rootId)return"";let t=p.get(this._chatId);return a` <header class="panel-head">
        <div class="chat-title">
          <h2>${s("Thread")}</h2>
          ${t?a`<p dir="auto">${p.nameOf(t)}</p>`:""}
        </div>
        <button
          type="button"
          class="icon-button"
          aria-label=${s("Copy the link to this thread")}
          title=${s("Copy the link to this thread")}
          @click=${()=>this._copyLink()}
        >
          ${u("link")}
        </button>
        <button
          type="button"
          class="icon-button"
          aria-label=${s("Close the thread")}
          title=${s("Close the thread (Esc)")}
          data-testid="close-thread"
          @click=${()=>this._close()}
        >
          ${u("close")}
        </button>
      </header>
      ${this._problem?this._failure(this._problem):this._body()}`}_failure({status:t,message:e}){return t===404?a`<div class="empty" role="note">
        ${u("alert")}
        <h3>${s("Thread not found")}</h3>
        <p>${s("Its first message doesn't exist, or you're not a member of the chat.")}</p>
      </div>`:a`<div class="empty" role="note">
      ${u("alert")}
      <h3>${s("Couldn't load the thread")}</h3>
      <p>${e}</p>
      <button type="button" class="button button-primary" @click=${()=>this._again()}>
        ${s("Try again")}
      </button>
    </div>`}_again(){let{_chatId:t,rootId:e}=this;this.leave(),this.open(t,e)}_body(){return R([this._opened],t=>t,()=>a` <message-list
            .mayDecide=${t=>this._chat!==void 0&&Te(this._chat,t)}
            @bottom=${()=>this._markRead()}
            @older=${()=>this._history.loadOlder()}
            @newer=${()=>this._history.loadNewer()}
            @newest=${()=>this._goTo(()=>this._history.loadNewest())}
            @place=${t=>this._goTo(()=>this._history.loadAround(t.detail))}
            @retry-turn=${t=>this._session.retry(t.detail)}
            @discard-turn=${t=>this._session.discard(t.detail)}
            @ask-again=${t=>this._composer.write(t.detail)}
            @reply=${t=>this._reply(t.detail)}
            @edit-and-ask=${t=>this._editAndAsk(t)}
            @answer-again=${t=>this._answerAgain(t.detail)}
            @stop-answer=${t=>this._stopAnswer(t.detail)}
            @decide=${t=>qe(this._session,t.detail,e=>this._composer.say(e))}
          ></message-list>
          <chat-composer></chat-composer>`)}get _list(){return this.querySelector("message-list")}get _composer(){return this.querySelector("chat-composer")}isOpenAt(t,e){return this._chatId===t&&this.rootId===e}async open(t,e,i=""){if(this.isOpenAt(t,e)){i?this.showMessage(i):this._composer?.focusText();return}let o=document.activeElement!==document.body;this.leave(),[this._chatId,this.rootId,this._problem]=[t,e,null],this._opened+=1;let n=()=>this.isOpenAt(t,e);w.dispatch({type:"opened",chatId:t,thread:e}),await this.updateComplete;try{let l=p.get(t)||await p.reload(t);if(!n()||(this._chat=l,this._listen(p.session(l)),await this._composer.open(l,this._session),!i&&matchMedia("(pointer: fine)").matches?this._composer.focusText():o&&this._list.querySelector(".log").focus({preventScroll:!0}),await this._load(i),!n()))return;Me(w,this._session),this._showRunning(),this._markRead()}catch(l){if(!$(l))throw l;n()&&(this._problem=l)}}leave(){this._listeners.abort(),this._listeners=new AbortController,this._session=null,[this.rootId,this._chatId]=["",""],w.dispatch({type:"opened",chatId:"",thread:""})}escape(){return w.state.replyTo?(w.dispatch({type:"reply-to",entry:null}),!0):!!(this._composer?.isEmpty&&this._composer.stopOwn())}async showMessage(t){w.state.entries.some(e=>e.id===t)?w.dispatch({type:"target",id:t}):await this._isShown(t)||this.dispatchEvent(new CustomEvent("open-message",{bubbles:!0,detail:{chatId:this._chatId,messageId:t}}))}async _isShown(t){try{await this._history.loadAround(t)}catch(e){if(e.status!==404&&e.status!==400)throw e;return!1}return w.dispatch({type:"target",id:t}),!0}async _load(t){if(t&&await this._isShown(t))return;await this._history.load(this._session.failures);let e=w.state.entries[0]?.replies;e?.following&&e.readSeq<e.lastSeq&&w.dispatch({type:"unread-after",seq:e.readSeq})}_listen(t){this._session=t;let{signal:e}=this._listeners,i=(o,n)=>t.addEventListener(o,l=>n(l.detail),{signal:e});Le(w,t,e),i("message",o=>this._onMessage(o)),i("act",o=>this._onAct(o)),i("response",o=>this._onResponse(o)),i("response-end",o=>this._onResponseEnd(o)),i("ready",()=>this._markRead()),i("reset",()=>this._onReset()),new Oe(this._list,o=>this._composer.say(o),w).listen(t,()=>p.get(this._chatId)||this._chat,e)}async _onReset(){let{_chatId:t,rootId:e}=this;w.dispatch({type:"opened",chatId:t,thread:e}),await this._goTo(()=>this._load(""))}async _onMessage({message:t,seq:e}){let i=ce(t,e),{_session:o,rootId:n}=this;i.thread===n&&(i.reply_to&&(i=await this._history.withQuote(i),o!==this._session||n!==this.rootId)||(w.dispatch({type:"message",entry:i}),he(i,y.id)?this._list.toBottom():i.sender_kind==="user"&&e>o.replayedTo&&b(d(s("New reply from %(name)s"),{name:i.name})),this._markRead()))}_onAct(t){let e=w.state.entries.find(({id:i})=>i===t.message_id);ne(e,t)&&this._goTo(()=>this._history.refresh(t.message_id))}_onResponse(t){w.state.live.has(t.id)&&(this._announcements.answering(t),this._showRunning())}_onResponseEnd(t){t.thread===this.rootId&&this._announcements.ended(t),this._showRunning()}_showRunning(){this._composer?.showRunning(this._session.ownResponses.filter(t=>t.thread===this.rootId))}_reply(t){w.dispatch({type:"reply-to",entry:t}),this._composer.focusText()}_editAndAsk(t){this._session.editAndAsk(t.detail)||(t.preventDefault(),this._composer.say(s("You're offline. Try again when you're back online.")))}_answerAgain({id:t}){this._session.answerAgain(t)||this._composer.say(s("You're offline. Try again when you're back online."))}_stopAnswer(t){this._session.cancel(t.id),b(d(s("Stopping %(name)s"),{name:t.agent||s("the answer")}))}async _goTo(t){try{await t()}catch(e){if(!$(e))throw e;this._composer?.say(e.message)}}_markRead(){if(!this._session||document.hidden||!this._list?.atBottom)return;let t=w.state.entries.find(({id:i})=>i===this.rootId),e=de(w.state);!e||e.alsoInChat||e.id===this.rootId||t&&!t.replies?.following||e.seq<=Math.max(t?.replies?.readSeq??0,this._read??0)||this._session.markRead(e.id)&&(this._read=e.seq)}async _copyLink(){b(await J(ye(this._chatId,this.rootId))?s("Link copied."):s("Copying is blocked by the browser."))}_close(){this.dispatchEvent(new Event("close-thread",{bubbles:!0}))}};customElements.define("thread-panel",wt);var vs=["#bd4054","#b74c05","#93630b","#3f7b05","#007c59","#007696","#1b6cc7","#6a5ec8","#954fb1","#b04488","#4b5563"],Pe=[s("Red"),s("Orange"),s("Ochre"),s("Green"),s("Sea green"),s("Teal"),s("Blue"),s("Violet"),s("Purple"),s("Pink"),s("Grey")],et=(r,t,e)=>a`<fieldset class="colours">
    <legend>${s("Colour")}</legend>
    ${["",...vs].map((i,o)=>a`<label class="colour" title=${o?Pe[o-1]:s("Automatic")}>
          <input
            type="radio"
            name=${r}
            value=${i}
            .checked=${i===t}
            @change=${()=>e(i)}
          />
          <span
            class="colour-dot ${i?"":"is-automatic"}"
            .style=${i?`background: ${i}`:""}
          ></span>
          <span class="visually-hidden">${o?Pe[o-1]:s("Automatic")}</span></label
        >`)}
  </fieldset>`;async function st(r){let t;try{t=await createImageBitmap(r)}catch{return r}let e=Math.min(t.width,t.height),i=document.createElement("canvas");i.width=i.height=Math.min(512,e);let o=i.getContext("2d");if(!o)return r;o.drawImage(t,(t.width-e)/2,(t.height-e)/2,e,e,0,0,i.width,i.height),t.close();let n=r.type==="image/jpeg"?"image/jpeg":"image/png";return new Promise(l=>i.toBlob(c=>l(c??r),n,.9))}var ks={"":s("Use my default"),all:s("All messages"),mentions:s("Mentions and direct messages"),none:s("Nothing")},vt=class extends E{static properties={_chat:{state:!0},_avatar:{state:!0},_address:{state:!0}};constructor(){super(),this._chat=null,this._avatar="",this._address=null}async open(t){Object.assign(this,{_chat:t,_avatar:t.avatar||"",_address:t.avatar_url??null}),await this._show()}render(){let t=this._chat;if(!t)return a`<dialog class="dialog"></dialog>`;let e=o=>t.rights.includes(o),i=!e("describe");return a`<dialog class="dialog" aria-labelledby="settings-title" data-testid="chat-settings">
      <form
        class="dialog-form"
        @submit=${o=>this._save(o,t)}
      >
        ${this._head("settings-title",s("Chat settings"))}
        <div class="dialog-body">
          <label for="settings-name">${s("Name")}</label>
          <input
            class="field"
            id="settings-name"
            name="title"
            maxlength="200"
            autocomplete="off"
            dir="auto"
            .value=${t.title}
            placeholder=${p.nameOf(t)}
            ?disabled=${i}
          />
          <label for="settings-about">${s("Description")}</label>
          <textarea
            class="field"
            id="settings-about"
            name="description"
            maxlength="2000"
            rows="3"
            dir="auto"
            .value=${t.description??""}
            ?disabled=${i}
          ></textarea>
          ${i?a`<p class="quiet">
                  ${t.home?d(s("The name, description and picture are changed on %(server)s."),{server:t.home}):s("Only owners and admins can change the name, description and picture.")}
                </p>`:this._picture(t)}
          ${e("rule")?a`<label for="settings-hops"
                    >${s("Max. agent-to-agent answers in a row (0 = off)")}</label
                  >
                  <input
                    class="field"
                    id="settings-hops"
                    name="agent_hops"
                    type="number"
                    min="0"
                    max="20"
                    required
                    .value=${String(t.agent_hops??0)}
                  />`:""}
          ${t.home?"":a`<label class="picker-option"
                  ><span class="picker-text"
                    ><b>${s("Paused agents")}</b
                    ><small>${s("No agent answers until a member resumes them")}</small></span
                  >
                  <input type="checkbox" name="agents_quiet" .checked=${t.agents_quiet}
                /></label>`}
          <h3>${s("Only for me")}</h3>
          <label class="picker-option"
            ><span class="picker-text"
              ><b>${s("Mute for me")}</b
              ><small
                >${s("No notifications; unread messages stay grey unless they mention you. Others can't see this")}</small
              ></span
            >
            <input type="checkbox" name="muted" .checked=${t.muted}
          /></label>
          <label for="settings-level">${s("Notify me about")}</label>
          <select class="field" id="settings-level" name="notifications">
            ${Object.entries(ks).map(([o,n])=>a`<option value=${o} ?selected=${o===t.notifications}>
                  ${n}
                </option>`)}
          </select>
        </div>
        <footer>
          ${this._problem()}
          <button type="button" class="button" @click=${()=>this._close()}>
            ${s("Cancel")}
          </button>
          <button type="submit" class="button button-primary" ?disabled=${this._isBusy}>
            ${s("Save")}
          </button>
        </footer>
      </form>
    </dialog>`}_picture(t){let{_avatar:e}=this,i=e.startsWith("#"),o=e&&!i&&!e.startsWith("content:")?e:"",n=e?oe({avatar:e,avatar_url:this._address}):{};return a`<div class="profile-head">
        <span class="profile-face">${G(p.nameOf(t),n,"chat",t.id)}</span>
        <div class="profile-picture">
          <button
            type="button"
            class="button"
            ?disabled=${this._isBusy}
            @click=${()=>this.querySelector("input[type=file]").click()}
          >
            ${s("Upload a picture")}
          </button>
          <input
            type="file"
            accept="image/png,image/jpeg,image/webp,image/gif"
            hidden
            tabindex="-1"
            data-testid="chat-picture-input"
            @change=${this._upload}
          />
          ${e?a`<button
                  type="button"
                  class="button button-quiet"
                  @click=${()=>{this._avatar=""}}
                >
                  ${s("Use the automatic icon")}
                </button>`:""}
        </div>
      </div>
      <label for="settings-avatar">${s("Use an emoji as the icon")}</label>
      <input
        class="field"
        id="settings-avatar"
        maxlength="32"
        autocomplete="off"
        .value=${o}
        placeholder=${s("Automatic")}
        @input=${l=>{this._avatar=l.target.value.trim()}}
      />
      ${et("chat_colour",i?e:"",l=>{this._avatar=l})}`}async _upload(t){let e=t.target,[i]=e.files??[];e.value="",i&&await this._attempt(async()=>{let o=await st(i),n=await f.upload(new File([o],i.name,{type:o.type}),()=>{}).done;this._avatar=`content:${n.content_id}`,this._address=n.url})}async _save(t,e){t.preventDefault();let i=`/chats/${encodeURIComponent(e.id)}`,o=new FormData(t.target),n=k=>o.has(k)?String(o.get(k)).trim():void 0,l=o.get("agent_hops"),c={agents_quiet:e.home?void 0:o.has("agents_quiet"),avatar:this._avatar,title:n("title"),description:n("description"),agent_hops:l===null?void 0:Number(l)},m={...e},g=Object.fromEntries(Object.entries(c).filter(([k,L])=>L!==void 0&&L!==(m[k]??""))),v={muted:o.has("muted"),notifications:o.get("notifications")};await this._attempt(async()=>{Object.keys(g).length&&await f.send("PATCH",i,g),(v.muted!==e.muted||v.notifications!==e.notifications)&&await f.send("PUT",`${i}/mute`,v),await p.reload(e.id),this._close(),b(s("Saved."))})}};customElements.define("chat-settings-dialog",vt);var kt={member:s("Member"),admin:s("Admin"),owner:s("Owner")},xt=r=>d(M("%(n)s day","%(n)s days",r),{n:r}),Ue=r=>d(M("%(n)s person","%(n)s people",r),{n:r});function Fe({role:r,used_count:t=0,most_uses:e}){let i=e?d(s("%(used)s of %(most)s joined"),{used:t,most:e}):d(s("%(used)s joined"),{used:t});return r&&r!=="member"?`${i} · ${kt[r]}`:i}function Be({opened_count:r=0,grows:t}){let e=d(M("Opened %(n)s time","Opened %(n)s times",r),{n:r});return t?`${e} · ${s("later messages too")}`:e}var We={invite:{path:"invite-links",right:"add_members"},share:{path:"share-links",right:"share"}},xs={markdown:[s("Markdown"),s("to read")],json:[s("JSON"),s("one document, for programs")],ndjson:[s("NDJSON"),s("a line for each message, for long chats")]},Ve=[1,7,30],Ss=[1,10,100],St=class extends _{static properties={_chat:{state:!0},_links:{state:!0},_made:{state:!0},_error:{state:!0},_busy:{state:!0},_copied:{state:!0}};constructor(){super(),this._chat=void 0,this._made=null,this._links={invite:[],share:[]},this._error="",this._busy=this._copied=!1}async open(t){Object.assign(this,{_chat:t,_links:{invite:[],share:[]},_made:null,_error:"",_busy:!1,_copied:!1}),await this.updateComplete,this.querySelector("dialog")?.showModal(),await this._do(()=>this._read())}render(){let t=this._chat;if(!t)return a`<dialog class="dialog"></dialog>`;let e=i=>t.rights.includes(We[i].right);return a`<dialog
      class="dialog links-dialog"
      aria-labelledby="links-title"
      data-testid="links-dialog"
    >
      <div class="dialog-form">
        <header>
          <h2 id="links-title">${s("Invite, share, download")}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${s("Close")}
            title=${s("Close")}
            @click=${this._close}
          >
            ${u("close")}
          </button>
        </header>
        <div class="dialog-body">
          ${this._error?a`<p class="dialog-error" role="alert">${this._error}</p>`:h}
          ${t.home?h:a`<section aria-labelledby="links-invite">
                    <h3 id="links-invite">${s("Invite by a link")}</h3>
                    <p class="quiet">
                      ${s("Anyone who signs in can join this chat with the link.")}
                    </p>
                    ${e("invite")?this._inviteForm(t):h}${this._list("invite")}
                  </section>
                  <section aria-labelledby="links-share">
                    <h3 id="links-share">${s("Public read-only link")}</h3>
                    <p class="quiet">
                      ${s("Anyone with the link can read the messages without signing in. All members can see that the link exists.")}
                    </p>
                    ${e("share")?this._shareForm():a`<p class="quiet">
                            ${s("Only owners and admins can create these links.")}
                          </p>`}${this._list("share")}
                  </section>`}
          <section aria-labelledby="links-file">
            <h3 id="links-file">${s("Download the chat")}</h3>
            <ul class="download-list">
              ${Object.entries(xs).map(([i,[o,n]])=>a`<li>
                    <a
                      class="button"
                      href="/api/v1/chats/${encodeURIComponent(t.id)}/export?format=${i}"
                      download
                      data-testid="export-${i}"
                      >${u("down")}${o}</a
                    >
                    <span class="quiet">${n}</span>
                  </li>`)}
            </ul>
          </section>
        </div>
      </div>
    </dialog>`}_inviteForm(t){let e=t.participants.find(({kind:o,id:n})=>o==="user"&&String(n)===y.id)?.role,i=e==="owner"?["member","admin","owner"]:e==="admin"?["member","admin"]:["member"];return a`<form
        class="link-form"
        @submit=${o=>this._make(o,"invite")}
      >
        ${this._choice("days",s("Ends after"),Ve.map(o=>[o,xt(o)]),7)}
        ${this._choice("most_uses",s("Max. uses"),[["",s("Unlimited")],...Ss.map(o=>[o,Ue(o)])],"")}
        ${i.length>1?this._choice("role",s("Role"),i.map(o=>[o,kt[o]]),"member"):h}
        <button type="submit" class="button" data-testid="make-invite" ?disabled=${this._busy}>
          ${u("link")}${s("Create invite link")}
        </button>
      </form>
      ${this._address("invite")}`}_shareForm(){return a`<form
        class="link-form"
        @submit=${t=>this._make(t,"share")}
      >
        ${this._choice("days",s("Ends after"),Ve.map(t=>[t,xt(t)]),7)}
        ${this._choice("grows",s("Include"),[["",s("messages so far")],["1",s("later messages too")]],"")}
        <button type="submit" class="button" data-testid="make-share" ?disabled=${this._busy}>
          ${u("link")}${s("Create public link")}
        </button>
      </form>
      ${this._address("share")}`}_choice(t,e,i,o){return a`<label
      >${e}
      <select class="field" name=${t}>
        ${i.map(([n,l])=>a`<option value=${n} ?selected=${n===o}>${l}</option>`)}
      </select></label
    >`}_address(t){return this._made?.kind!==t?h:a`<div class="link-address" role="status">
      <label
        >${s("Copy this link now. You won't be able to see it again.")}
        <input
          class="field"
          readonly
          .value=${this._made.url}
          data-testid="link-address"
          @focus=${e=>e.target.select()}
      /></label>
      <button
        type="button"
        class="button button-primary"
        data-testid="copy-link"
        @click=${this._copy}
      >
        ${u(this._copied?"check":"copy")}${this._copied?s("Copied"):s("Copy")}
      </button>
    </div>`}_list(t){let e=this._links[t].filter(({state:i})=>i==="active");return e.length===0?h:a`<ul class="link-list" data-testid="${t}-links">
      ${e.map(i=>a`<li>
            <span class="picker-text"
              ><b dir="auto"
                >${d(s("By %(name)s, until %(day)s"),{name:C.nameOf(i.created_by),day:re(Date.parse(i.expires_at))})}</b
              >
              <small>${t==="invite"?Fe(i):Be(i)}</small></span
            >
            ${this._mayRevoke(t,i)?a`<button
                    type="button"
                    class="button"
                    ?disabled=${this._busy}
                    @click=${()=>this._revoke(t,i)}
                  >
                    ${s("Revoke")}
                  </button>`:h}
          </li>`)}
    </ul>`}_mayRevoke(t,e){return this._chat?.rights.includes("share")||t==="invite"&&e.created_by===y.username}async _make(t,e){t.preventDefault();let i=new FormData(t.target),o={days:Number(i.get("days"))};i.get("most_uses")&&(o.most_uses=Number(i.get("most_uses"))),i.get("role")&&(o.role=i.get("role")),e==="share"&&(o.grows=!!i.get("grows")),await this._do(async()=>{let n=await f.post(this._path(e),o);this._made={kind:e,id:n.id,url:n.url},this._copied=!1,await this._read(),await this.updateComplete,this.querySelector(".link-address input")?.focus()})}async _revoke(t,e){await this._do(async()=>{await f.send("DELETE",`${this._path(t)}/${e.id}`),this._made?.id===e.id&&this._made.kind===t&&(this._made=null),await this._read(),b(s("The link no longer works."))}),this.querySelector("dialog .icon-button")?.focus()}async _copy(){this._copied=await J(this._made?.url??""),b(this._copied?s("Copied"):s("Couldn't copy. The address is selected.")),this._copied||this.querySelector(".link-address input")?.select()}async _read(){let[t,e]=await Promise.all([f.get(this._path("invite")),f.get(this._path("share"))]);this._links={invite:t.data,share:e.data}}_path(t){return`/chats/${encodeURIComponent(this._chat?.id??"")}/${We[t].path}`}_close(){this.querySelector("dialog")?.close()}async _do(t){this._error="",this._busy=!0;try{await t()}catch(e){if(!$(e))throw e;this._error=e.message}finally{this._busy=!1}}};customElements.define("links-dialog",St);var Es=[1,4,8,10,13],Cs=[3,10,11,15],As=[3,10],Os=[0,1,4,8,16,17,19,20,21],Ct={label:"windows-1252",name:"Windows-1252"},Ts=/(?<!\p{Script=Cyrillic})[\u0410-\u042F\u0401]?(?:[\u0430-\u044F\u0451]{2,}|[\u0410-\u042F\u0401]+)(?!\p{Script=Cyrillic})/gu;function At(r,t,e=()=>!1){let i=0,o=0;for(let n=0;n<r.length;n+=1){let l=r[n];l<128||(i+=1,e(l)?o+=.6:(n+=1,t(l,r[n])&&(o+=1)))}return{all:i,share:i?o/i:0}}var N=(r,t,e)=>r>=t&&r<=e;function qs(r){let t=[...r].filter(i=>i>""),e=t.filter(i=>{let o=(i.codePointAt(0)||0)-44032;if(o<0||o>=11172)return/[\u3000-\u303f\uff01-\uff5e]/.test(i);let[n,l,c]=[Math.floor(o/588),Math.floor(o%588/28),o%28];return Cs.includes(l)||Es.includes(n)?(c===0||c===4)&&!As.includes(l):Os.includes(c)});return t.length?e.length/t.length:0}function Is(r){let t=!0,e=At(r,(i,o)=>(i>200&&(t=!1),(N(i,176,215)||N(i,161,163))&&o>=161));return t&&e.all>=12?e.share*.9:e.share}function Rs(r){let t=0,e=0,i=0;for(let o=0;o<=r.length;o+=1)r[o]>=128?i+=1:(t+=i,i<=2&&(e+=i),i=0);return t?e/t:0}var Ls=[{label:"shift_jis",name:"Shift-JIS",likeness:r=>At(r,t=>N(t,129,131)||N(t,136,152),t=>N(t,161,223)).share},{label:"euc-kr",name:"EUC-KR",likeness:(r,t)=>qs(t)},{label:"gb18030",name:"GBK",likeness:Is},{label:"big5",name:"Big5",likeness:r=>At(r,t=>N(t,161,163)||N(t,164,198)).share},{...Ct,likeness:Rs},{label:"windows-1251",name:"Windows-1251",likeness:(r,t)=>(t.match(Ts)||[]).join("").length/(r.filter(e=>e>=128).length||1)}];function Et(r,t){try{return new TextDecoder(t,{fatal:!0}).decode(r,{stream:!0})}catch{return null}}function Ke(r){let t=new Uint8Array(r),e=t[0]===255&&t[1]===254?"utf-16le":t[0]===254&&t[1]===255?"utf-16be":"utf-8",i=Et(t,e);if(i!==null&&!i.includes("\0"))return{text:i,encoding:""};if(t.includes(0)){let m=["utf-16le","utf-16be"].map(g=>Et(t,g)).find(g=>g!==null&&!g.includes("\0")&&/[,;\t|\n]/.test(g));if(m)return{text:m,encoding:"UTF-16"}}let n=Ls.flatMap(({label:m,name:g,likeness:v})=>{let k=Et(t,m);return k===null?[]:[{text:k,encoding:g,likeness:v(t,k)}]}).reduce((m,g)=>g.likeness>m.likeness?g:m,{text:"",encoding:"",likeness:.6-Number.EPSILON}),{text:l,encoding:c}=n.encoding?n:{text:new TextDecoder(Ct.label).decode(t),encoding:Ct.name};return{text:l,encoding:c}}var He=300,Ms=4e3,Ns=4e7,Ds={PasswordException:()=>s("This file is password-protected. Download it to open it."),ResponseException:()=>s("This file can no longer be read.")},Ot=r=>String(new URL(`../vendor/${r}`,import.meta.url)),Ye=null;async function js(){try{let r=await import("../vendor/pdf/pdf.js");return r.GlobalWorkerOptions.workerSrc=Ot("pdf-worker/pdf-worker.js"),r}catch(r){throw Ye=null,r}}var Tt=class extends _{static properties={src:{},width:{type:Number},_sheets:{state:!0},_problem:{state:!0},_isCut:{state:!0}};constructor(){super(),this.src="",this.width=1,this._sheets=null,this._problem="",this._isCut=!1,this._task=null,this._document=null,this._observer=null,this._near=new Set}disconnectedCallback(){super.disconnectedCallback(),this._close()}willUpdate(t){t.has("src")&&this._open(this.src)}updated(t){if(t.has("_sheets")&&this._sheets&&!this._observer)this._observe();else if(t.has("width"))for(let e of this._near)this._draw(e)}render(){if(this._problem)return a`<p class="dialog-error" role="alert">${this._problem}</p>`;let t=this._sheets;if(!t)return q(s("Loading"));let e=this._document?.numPages??t.length;return a`${this._isCut?a`<p class="viewer-note">
            ${s("This is the beginning of the file. Download it to read the rest.")}
          </p>`:h}
    ${t.map((i,o)=>{let n=d(s("Page %(n)s of %(count)s"),{n:o+1,count:e});return a`<figure
        class="pdf-page"
        data-at=${o}
        .style=${`--width: ${this.width}; --ratio: ${i.ratio}`}
      >
        <canvas
          role="img"
          aria-label=${n}
          aria-hidden=${i.problem?"true":"false"}
        ></canvas>
        <figcaption>
          ${n}${i.problem?a`<p class="dialog-error">${i.problem}</p>`:h}
        </figcaption>
        <p class="visually-hidden" dir="auto">${i.text}</p>
      </figure>`})}`}async _open(t){if(this._close(),this._problem="",this._sheets=null,!!t)try{let{getDocument:e}=await(Ye||=js());if(this.src!==t||!this.isConnected)return;this._task=e({url:t,cMapUrl:Ot("pdf-worker/cmaps/"),wasmUrl:Ot("pdf-worker/pictures/"),useWasm:!1,useWorkerFetch:!0,enableXfa:!1,disableAutoFetch:!0,disableStream:!0,maxImageSize:Ns,verbosity:0});let i=await this._task.promise,o=(await i.getPage(1)).getViewport({scale:1});if(this.src!==t||!this.isConnected)return;this._document=i,this._isCut=i.numPages>He,this._sheets=Array.from({length:Math.min(i.numPages,He)},()=>({ratio:o.height/o.width,text:"",problem:"",drawing:null}))}catch(e){this.src===t&&this.isConnected&&(this._problem=Us(e))}}_close(){this._observer?.disconnect(),this._observer=null,this._near.clear(),this._document=null,this._task?.destroy(),this._task=null}_observe(){this._observer=new IntersectionObserver(t=>{for(let{target:e,isIntersecting:i}of t){let o=Number(e.dataset.at);i?this._near.add(o):this._near.delete(o),i?this._draw(o):this._release(o)}},{root:this.closest(".viewer-place"),rootMargin:"60%"});for(let t of this.querySelectorAll("figure"))this._observer.observe(t)}_canvas(t){return this.querySelectorAll("canvas")[t]}async _draw(t){let e=this._sheets?.[t],i=this._document;if(!(!e||!i))try{let o=await i.getPage(t+1);if(this._document!==i||!this._near.has(t))return;let n=o.getViewport({scale:1});e.ratio=n.height/n.width,this.requestUpdate(),await this.updateComplete,await this._paint(e,o,t),e.text||=await Fs(o),this.requestUpdate()}catch(o){if(this._document!==i||Ps(o))return;e.problem=s("This page can't be displayed."),this.requestUpdate()}}async _paint(t,e,i){if(!this._near.has(i))return;let o=this._canvas(i),n=e.getViewport({scale:1}),l=o.clientWidth*devicePixelRatio/n.width,c=e.getViewport({scale:Math.min(l,Ms/Math.max(n.width,n.height))});if(o.width===Math.floor(c.width)&&!t.drawing)return;t.drawing?.cancel();let m=document.createElement("canvas");Object.assign(m,{width:Math.floor(c.width),height:Math.floor(c.height)});let g=e.render({canvas:m,viewport:c});t.drawing=g;try{await g.promise}finally{t.drawing===g&&(t.drawing=null)}this._near.has(i)&&(Object.assign(o,{width:m.width,height:m.height}),o.getContext("2d")?.drawImage(m,0,0),m.width=0)}_release(t){this._sheets?.[t]?.drawing?.cancel(),this._canvas(t).width=0}};customElements.define("pdf-pages",Tt);var Ps=r=>r instanceof Error&&r.name==="RenderingCancelledException";function Us(r){let t=r instanceof Error?r.name:"";return Ds[t]?.()??s("No preview for this file. Download it to open it.")}async function Fs(r){let{items:t}=await r.getTextContent();return t.map(e=>"str"in e?e.str+(e.hasEOL?`
`:""):"").join("")}var it=[1,1.5,2,3,5],qt=class extends _{static properties={_medium:{state:!0},_pictures:{state:!0},_at:{state:!0},_step:{state:!0},_preview:{state:!0}};constructor(){super(),this._medium=null,this._pictures=[],this._at=-1,this._step=0,this._preview=null,this._opener=null}connectedCallback(){super.connectedCallback(),addEventListener("view-media",t=>{let{target:e,detail:i}=t;this.open(e,i)})}async open(t,e){this._opener=t;let i=Array.from(document.querySelectorAll(".log a.media-image"));this._pictures=e.kind==="image"?i.map(o=>({kind:"image",url:o.getAttribute("href")??"",name:o.dataset.name??"",shown:o.dataset.shown})):[],this._at=i.indexOf(t),this._show(e),await this.updateComplete,this._dialog.showModal(),this._place.focus()}get _dialog(){return this.querySelector("dialog")}get _place(){return this.querySelector(".viewer-place")}render(){let t=this._medium;return a`<dialog
      class="dialog viewer"
      aria-labelledby="viewer-title"
      data-testid="viewer"
      @keydown=${e=>this._key(e)}
      @close=${()=>this._closed()}
    >
      <header>
        <h2 id="viewer-title" dir="auto">${t?.name}</h2>
        ${t?this._tools(t):h}
        <button
          type="button"
          class="icon-button"
          aria-label=${s("Close")}
          title=${s("Close")}
          @click=${()=>this._dialog.close()}
        >
          ${u("close")}
        </button>
      </header>
      <div
        class="viewer-place ${t?`is-${t.kind}`:""}"
        tabindex="0"
        role="group"
        aria-labelledby="viewer-title"
      >
        ${t?this._content(t):h}
      </div>
    </dialog>`}_tools({kind:t,url:e,name:i}){let o=t==="image",n=o||t==="pdf",l=o&&this._pictures.length>1&&this._at>=0,c=l?d(s("%(n)s of %(count)s"),{n:this._at+1,count:this._pictures.length}):"";return a`<span class="viewer-count" role="status">${c}</span>
      ${this._tool("back",s("Previous picture"),l,this._at<=0,()=>this._go(-1))}${this._tool("next",s("Next picture"),l,this._at>=this._pictures.length-1,()=>this._go(1))}
      ${this._tool("zoomOut",s("Smaller"),n,this._step===0,()=>this._zoom(-1))}${this._tool("zoomIn",s("Larger"),n,this._step===it.length-1,()=>this._zoom(1))}
      <a class="button" href=${e} download=${i}>${s("Download")}</a>`}_tool(t,e,i,o,n){return a`<button
      type="button"
      class="icon-button"
      aria-label=${e}
      title=${e}
      ?hidden=${!i}
      ?disabled=${o}
      @click=${n}
    >
      ${u(t)}
    </button>`}_content({kind:t,url:e,name:i,shown:o=e}){if(t==="image")return a`<img
        class=${this._step?"is-large":""}
        src=${o}
        alt=${i}
        .style=${this._step?`width: ${100*it[this._step]}%`:""}
        @click=${()=>this._setZoom(this._step===0?2:0)}
      />`;if(t==="pdf")return a`<pdf-pages .src=${e} .width=${it[this._step]}></pdf-pages>`;let n=this._preview;return n?n.problem?a`<p class="dialog-error" role="alert">${n.problem}</p>`:n.note?a`<p>${n.note}</p>`:a`${n.isPart?a`<p class="viewer-note">
            ${s("This is the beginning of the file. Download it to read the rest.")}
          </p>`:h}${n.encoding?a`<p class="viewer-note" data-testid="encoding">
            ${d(s("Read as %(encoding)s. If letters look wrong, save the file as UTF-8."),{encoding:n.encoding})}
          </p>`:h}${n.rows?Ws(n.rows):a`<pre dir="auto">${n.text}</pre>`}`:q(s("Loading"))}_show(t){this._medium=t,this._step=0,this._preview=null,(t.kind==="text"||t.kind==="table")&&this._read(t)}async _read(t){let e;try{e=await Vs(t)}catch(i){if(!(i instanceof TypeError))throw i;e={problem:s("Couldn't reach the server. Close this and try again.")}}this._medium===t&&(this._preview=e)}_setZoom(t){this._step=Math.max(0,Math.min(it.length-1,t))}_zoom(t){this._setZoom(this._step+t)}async _go(t){let e=this._at+t;if(!this._pictures[e])return;this._at=e,this._show(this._pictures[e]),await this.updateComplete;let i=document.activeElement;this._dialog.contains(i)&&!(i instanceof HTMLButtonElement&&i.disabled)||this._place.focus()}_key(t){if(!["image","pdf"].includes(this._medium?.kind??"")||t.ctrlKey||t.metaKey||t.altKey)return;let e={"+":()=>this._zoom(1),"=":()=>this._zoom(1),"-":()=>this._zoom(-1),0:()=>this._setZoom(0)},i=getComputedStyle(this).direction==="rtl"?-1:1;this._medium?.kind==="image"&&this._step===0&&Object.assign(e,{ArrowLeft:()=>this._go(-i),ArrowRight:()=>this._go(i)}),e[t.key]&&(t.preventDefault(),e[t.key]())}_closed(){this._medium=null,this._opener?.focus()}};customElements.define("media-viewer",qt);function Ws([r=[],...t]){return a`<table>
    <thead>
      <tr>
        ${r.map(e=>a`<th scope="col" dir="auto">${e}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${t.map(e=>a`<tr>
            ${e.map(i=>a`<td dir="auto">${i}</td>`)}
          </tr>`)}
    </tbody>
  </table>`}async function Vs({url:r,kind:t}){let e=await fetch(r,{headers:{Range:`bytes=0-${199999}`}});if(e.status===416)return{note:s("This file is empty.")};if(!e.ok)return{problem:s("This file can no longer be read.")};let{text:i,encoding:o}=Ke(await e.arrayBuffer()),n=e.status===206;if(i.includes("\0"))return{note:s("This isn't a text file. Download it to open it.")};if(t==="text")return{text:i,encoding:o,isPart:n};let{rows:l,isCut:c}=ve(i);return{rows:l,encoding:o,isPart:n||c}}var Ks={owner:[s("Owner"),s("Full control, including roles, billing and budgets")],admin:[s("Admin"),s("Can rename the chat, remove members and configure agents")],member:[s("Member"),s("Can write, and add people and agents")]},Hs={mention:s("when mentioned"),always:s("every message"),keyword:s("a mention or a keyword"),never:s("never")},Ys={chat:s("all messages of the chat"),last:s("the last messages"),addressed:s("only messages addressed to it and its answers")},zs={day:s("each day"),total:s("in total")},Gs=(r,t,e)=>a`<option value=${r} ?selected=${r===e}>${t}</option>`,It=(r,t)=>Object.entries(r).map(([e,i])=>Gs(e,i,t)),Rt=class extends E{static properties={_chat:{state:!0},_member:{state:!0},_trigger:{state:!0},_context:{state:!0},_confirms:{state:!0}};constructor(){super(),this._chat=null,this._member=null,this._trigger=void 0,this._context=void 0,this._confirms=!1}async open(t,e){Object.assign(this,{_chat:t,_member:e,_trigger:e.trigger,_context:e.context,_confirms:!1}),await this._show()}render(){let{_member:t,_chat:e}=this;if(!t||!e)return a`<dialog class="dialog"></dialog>`;let i=c=>e.rights.includes(c),o=t.kind==="agent",n=!o&&String(t.id)===y.id,l=o?i("manage_agents")||i("manage_money"):i("change_roles");return a`<dialog class="dialog" aria-labelledby="member-title" data-testid="member-dialog">
      <form
        class="dialog-form"
        @submit=${c=>this._save(c,e,t)}
      >
        ${this._head("member-title",t.name)}
        <div class="dialog-body">
          ${o?this._agent(t,i):this._person(t,i)}
        </div>
        <footer>
          ${this._problem()}
          ${n||i("remove_members")?this._removal(e,t,n):""}
          ${o||n||p.directWith(t.name)?.id===e.id?"":a`<button
                  type="button"
                  class="button"
                  data-testid="message-member"
                  ?disabled=${this._isBusy}
                  @click=${()=>this._message(t)}
                >
                  ${u("message")}${s("Message")}
                </button>`}
          <button type="button" class="button" @click=${()=>this._close()}>
            ${l?s("Cancel"):s("Close")}
          </button>
          ${l?a`<button type="submit" class="button button-primary" ?disabled=${this._isBusy}>
                  ${s("Save")}
                </button>`:""}
        </footer>
      </form>
    </dialog>`}_removal(t,e,i){return this._confirms?a`<button
      type="button"
      class="button button-danger"
      data-testid="confirm-removal"
      @click=${()=>this._remove(t,e,i)}
    >
      ${i?s("Leave now"):d(s("Remove %(name)s now"),{name:e.name})}
    </button>`:a`<button
        type="button"
        class="button is-danger"
        data-testid="remove-member"
        @click=${()=>{this._confirms=!0}}
      >
        ${i?s("Leave chat"):s("Remove")}
      </button>`}_person(t,e){let i=Object.entries(Ks).map(([o,[n,l]])=>a`<label class="picker-option">
          <span class="picker-text"><b>${n}</b><small>${l}</small></span>
          <input
            type="radio"
            name="role"
            value=${o}
            ?checked=${o===t.role}
            ?disabled=${!e("change_roles")}
        /></label>`);return a`<fieldset class="payers">
        <legend class="visually-hidden">${s("Role")}</legend>
        ${i}
      </fieldset>
      ${e("change_roles")||this._chat?.home?"":a`<p class="quiet">${s("Only owners can change roles.")}</p>`}`}_agent(t,e){let i=!e("manage_agents");return a` <label for="member-trigger">${s("Answers")}</label>
      <select
        class="field"
        id="member-trigger"
        name="trigger"
        ?disabled=${i}
        @change=${o=>{this._trigger=o.target.value}}
      >
        ${It(Hs,t.trigger)}
      </select>
      ${this._trigger==="keyword"?a`<label for="member-keywords">${s("Keywords, separated by commas")}</label>
              <input
                class="field"
                id="member-keywords"
                name="keywords"
                maxlength="600"
                required
                autocomplete="off"
                .value=${(t.keywords??[]).join(", ")}
                ?disabled=${i}
              />`:""}
      <label for="member-context">${s("Can see")}</label>
      <select
        class="field"
        id="member-context"
        name="context"
        ?disabled=${i}
        @change=${o=>{this._context=o.target.value}}
      >
        ${It(Ys,t.context)}
      </select>
      ${this._context==="last"?a`<label for="member-messages">${s("Number of messages")}</label>
              <input
                class="field"
                id="member-messages"
                name="context_messages"
                type="number"
                min="1"
                max="1000"
                required
                .value=${String(t.context_messages||20)}
                ?disabled=${i}
              />`:""}
      ${t.pricing?this._budget(t,e("manage_money")):""}
      ${i?a`<p class="quiet">${s("Only owners and admins can configure agents.")}</p>`:""}`}_budget(t,e){return a`<label for="member-budget"
        >${d(s("Budget for its answers in this chat (%(currency)s)"),{currency:t.pricing?.currency??""})}</label
      >
      <div class="pool-fill">
        <input
          class="field"
          id="member-budget"
          name="budget"
          inputmode="decimal"
          maxlength="20"
          autocomplete="off"
          placeholder=${s("No limit")}
          .value=${t.budget?K(t.budget):""}
          ?disabled=${!e}
        />
        <select
          class="field"
          name="budget_period"
          aria-label=${s("Budget period")}
          ?disabled=${!e}
        >
          ${It(zs,t.budget_period||"day")}
        </select>
      </div>`}_save(t,e,i){t.preventDefault();let o=new FormData(t.target),n=Object.fromEntries(o);return o.has("keywords")&&(n.keywords=String(o.get("keywords")).split(",").map(l=>l.trim()).filter(Boolean)),o.has("context_messages")&&(n.context_messages=Number(o.get("context_messages"))),o.has("budget")&&(n.budget=H(String(o.get("budget")))),this._attempt(async()=>{await f.send("PATCH",ze(e,i),n),this._done(d(s("%(name)s updated."),{name:i.name})),await p.reload(e.id)})}_message(t){return this._attempt(async()=>{let e=await p.message(t.name);this._close(),this.dispatchEvent(new CustomEvent("open-chat",{bubbles:!0,detail:e.id}))})}_remove(t,e,i){return this._attempt(async()=>{await f.send("DELETE",ze(t,e)),this._done(i?s("You left the chat."):d(s("%(name)s removed."),{name:e.name})),i?(this.dispatchEvent(new CustomEvent("left-chat",{bubbles:!0,detail:t.id})),await p.refresh()):await p.reload(t.id)})}_done(t){this._close(),b(t)}};customElements.define("member-dialog",Rt);var ze=(r,t)=>`/chats/${encodeURIComponent(r.id)}/participants/${t.participant_id}`;var Js=2e3,Lt=class extends _{static properties={label:{attribute:!1},text:{attribute:!1},_isCopied:{state:!0}};constructor(){super(),this.label="",this.text="",this._isCopied=!1,this._timer=0}render(){return navigator.clipboard?a`<button
        type="button"
        class="button copy"
        data-testid="copy"
        @click=${()=>this._copy()}
      >
        ${this._isCopied?s("Copied"):this.label}
      </button>
      <span class="visually-hidden" role="status"
        >${this._isCopied?s("Copied."):""}</span
      >`:h}async _copy(){await navigator.clipboard.writeText(this.text),this._isCopied=!0,clearTimeout(this._timer),this._timer=window.setTimeout(()=>{this._isCopied=!1},Js)}};customElements.define("copy-button",Lt);var Mt=class extends _{static properties={label:{attribute:!1},tabs:{attribute:!1},chosen:{attribute:!1}};constructor(){super(),this.label="",this.tabs=[],this.chosen=""}render(){return a`<div
      role="tablist"
      class="tabs"
      aria-label=${this.label}
      @keydown=${t=>this._key(t)}
    >
      ${this.tabs.map(({name:t,panel:e})=>{let i=t===this.chosen;return a`<button
          type="button"
          role="tab"
          class="tab"
          id="tab-${e}"
          aria-controls=${e}
          aria-selected=${String(i)}
          tabindex=${i?0:-1}
          @click=${()=>this._choose(t)}
        >
          ${t}
        </button>`})}
    </div>`}focus(){this.querySelector("[aria-selected=true]")?.focus()}async _key(t){let e=this.tabs.findIndex(({name:n})=>n===this.chosen),i=getComputedStyle(this).direction==="rtl"?-1:1,o={ArrowRight:e+i,ArrowLeft:e-i,Home:0,End:this.tabs.length-1}[t.key];o!==void 0&&(t.preventDefault(),this._choose(this.tabs[(o+this.tabs.length)%this.tabs.length].name),await this.updateComplete,this.focus())}_choose(t){this.chosen=t,this.dispatchEvent(new CustomEvent("choose-tab",{bubbles:!0,detail:t}))}};customElements.define("tab-list",Mt);var Xs=r=>r.map(t=>JSON.stringify(t,null,2)).join(`

`),Nt=class extends E{static properties={_protocols:{state:!0},_chosen:{state:!0}};constructor(){super(),this._protocols=null,this._chosen=""}async open(t){this._protocols=null,await this._show(),await this._attempt(async()=>{let{protocols:i}=await f.get(`/messages/${encodeURIComponent(t.id)}/frames`);this._protocols=i,this._chosen=i[0]?.label??""});let e=this.querySelector("tab-list");await e?.updateComplete,e?.focus()}render(){return a`<dialog
      class="dialog is-wide"
      aria-labelledby="console-title"
      data-testid="console"
    >
      <div class="dialog-form">
        ${this._head("console-title",s("View as…"))}
        <div class="dialog-body message-console">${this._body()}</div>
      </div>
    </dialog>`}_body(){let t=this._protocols;if(this._error)return this._problem();if(!t)return q(s("Loading"));let e=t.map(({key:i,label:o})=>({name:o,panel:`frames-${i}`}));return a`<tab-list
        .label=${s("Protocol")}
        .tabs=${e}
        .chosen=${this._chosen}
        @choose-tab=${i=>{this._chosen=i.detail}}
      ></tab-list>
      ${t.map(i=>this._panel(i))}`}_panel({key:t,label:e,title:i,frames:o,is_cut:n,call:l}){let c=Xs(o);return a`<div
      class="message-console"
      role="tabpanel"
      id="frames-${t}"
      aria-labelledby="tab-frames-${t}"
      data-protocol=${t}
      ?hidden=${e!==this._chosen}
    >
      <p class="quiet">
        ${o.length?i:d(s("%(title)s: no frames are stored for this message."),{title:i})}
      </p>
      ${o.length?a`<pre
              class="code-view"
              tabindex="0"
              aria-label=${d(s("Frames of %(label)s"),{label:e})}
              data-testid="frames"
            >
${c}</pre>`:h}
      ${n?a`<p class="quiet">${s("The message is long; the rest is omitted.")}</p>`:h}
      <div class="approval-form">
        ${o.length?a`<copy-button .label=${s("Copy frames")} .text=${c}></copy-button>`:h}${l?a`<copy-button .label=${s("Copy as curl")} .text=${l.curl}></copy-button>`:h}
      </div>
      ${l?a`<p class="quiet">
              ${l.in_chat?s("This call repeats the request in this chat, with your key in $KEY."):s("This call repeats the request in a new conversation, with your key in $KEY.")}
            </p>`:h}
    </div>`}};customElements.define("message-console",Nt);var Qs=200,Ge={choices:[],error:""},Dt=class extends _{static properties={taken:{attribute:!1},_people:{state:!0},_agents:{state:!0},_wanted:{state:!0}};constructor(){super(),this.taken=new Set,this._chosen=new Map,this._people=null,this._agents=null,this._wanted="",this._timer=0}connectedCallback(){super.connectedCallback(),this._readPeople(),this._readAgents()}chosen(t){return Array.from(this._chosen.values()).filter(e=>e.kind===t).map(({name:e})=>e)}get _search(){return this.querySelector("input[type=search]")}render(){let t=this._free(this._agents??Ge),e=A(this._wanted),i=c=>A(c||"").includes(e),o=this._withAddress(this._free(this._people??Ge)),n=t.filter(({name:c,description:m})=>i(c)||i(m)),l=n.length===t.length?String(t.length):d(s("%(n)s of %(count)s"),{n:n.length,count:t.length});return a`<div class="picker">
      <label for="picker-search">${s("Find people and agents")}</label>
      <input
        type="search"
        class="field"
        id="picker-search"
        placeholder=${s("Search by name")}
        autocomplete="off"
        @input=${()=>this._written()}
      />
      <h3>${s("People")}</h3>
      ${this._list(s("People"),this._people,o,()=>this._readPeople())}
      <h3
        aria-label=${this._agents?d(s("Agents, %(count)s"),{count:l}):s("Agents")}
      >
        ${s("Agents")}<span class="picker-count">${this._agents?l:""}</span>
      </h3>
      ${this._list(s("Agents"),this._agents,n,()=>this._readAgents())}
      <a class="button button-quiet" href="/account/agents">${s("Connect your own agent")}</a>
    </div>`}_list(t,e,i,o){return a`<ul class="picker-list" aria-label=${t}>
      ${e?.error?a`<li class="picker-none">
              ${e.error}
              <button type="button" class="button" @click=${o}>${s("Try again")}</button>
            </li>`:e&&!i.length?a`<li class="picker-none">${s("No matches.")}</li>`:R(i,W,n=>this._option(n))}
    </ul>`}_option(t){let{kind:e,name:i,description:o,pricing:n}=t,l=W(t),c=U(n);return a`<li>
      <label class="picker-option"
        >${T(i,e)}<span class="picker-text"
          ><b>${i}</b>${o?a`<small>${o}</small>`:h}${c?a`<small class="price">${c}</small>`:h}</span
        ><input
          type="checkbox"
          name=${l}
          .checked=${this._chosen.has(l)}
          @change=${m=>this._choose(t,m.target.checked)}
      /></label>
    </li>`}_withAddress(t){return/^[^\s@]+@[^\s@]+$/.test(this._wanted)&&!t.some(({name:i})=>i===this._wanted)?[...t,{kind:"user",name:this._wanted,description:s("On another server: will be invited")}]:t}_free({choices:t}){return t.filter(e=>!this.taken.has(W(e)))}_choose(t,e){e?this._chosen.set(W(t),t):this._chosen.delete(W(t))}_written(){clearTimeout(this._timer),this._timer=window.setTimeout(()=>{this._wanted=this._search.value.trim(),this._readPeople()},Qs)}async _readPeople(){let t=this._wanted,e=await Je(`/users?q=${encodeURIComponent(t)}`,({username:i})=>({kind:"user",name:i}));t===this._wanted&&(this._people=e)}async _readAgents(){this._agents=await Je("/agents",t=>({...t,kind:"agent",description:P.agent_descriptions[t.description??""]??t.description}))}};customElements.define("people-picker",Dt);var W=({kind:r,name:t})=>`${r}:${t}`;async function Je(r,t){try{let{data:e}=await f.get(r);return{choices:e.map(t),error:""}}catch(e){if(!$(e))throw e;return{choices:[],error:e.message}}}var jt=class extends E{static properties={_chat:{state:!0},_opened:{state:!0}};constructor(){super(),this._chat=null,this._opened=0}startChat(){return this._open(null)}addTo(t){return this._open(t)}async _open(t){this._chat=t,this._opened+=1,await this._show(),await this._picker.updateComplete,matchMedia("(pointer: fine)").matches&&this.querySelector(".dialog-body input").focus()}get _picker(){return this.querySelector("people-picker")}render(){return a`<dialog class="dialog" aria-labelledby="dialog-title" data-testid="new-chat-dialog">
      ${R(this._opened?[this._opened]:[],t=>t,()=>this._form())}
    </dialog>`}_form(){let t=this._chat,e=new Set(t?.participants.map(({kind:i,name:o})=>`${i}:${o}`));return a`<form
      class="dialog-form"
      @submit=${i=>this._submit(i)}
    >
      ${this._head("dialog-title",t?s("Add people or agents"):s("New chat"))}
      <div class="dialog-body">
        ${t?h:a`<label for="chat-name">${s("Name")}</label>
                <input
                  class="field"
                  id="chat-name"
                  maxlength="200"
                  autocomplete="off"
                  placeholder=${s("Optional")}
                />`}<people-picker .taken=${e}></people-picker>
      </div>
      <footer>
        ${this._problem()}<button type="button" class="button" @click=${()=>this._close()}>
          ${s("Cancel")}
        </button>
        <button type="submit" class="button button-primary" ?disabled=${this._isBusy}>
          ${t?s("Add"):s("Start chat")}
        </button>
      </footer>
    </form>`}_submit(t){t.preventDefault();let e=this._picker.chosen("user"),i=this._picker.chosen("agent");return this._attempt(async()=>{this._chat?await this._add(this._chat,e,i):await this._start(e,i),this._close()})}async _start(t,e){let i=this.querySelector("#chat-name").value.trim(),n=!i&&t.length===1&&e.length===0?await p.message(t[0]):await p.create(i,t,e);this.dispatchEvent(new CustomEvent("open-chat",{bubbles:!0,detail:n.id}))}async _add(t,e,i){let o=`/chats/${encodeURIComponent(t.id)}/participants`;for(let n of e)await f.post(o,{user:n});for(let n of i)await f.post(o,{agent:n});await p.reload(t.id)}};customElements.define("new-chat-dialog",jt);var Zs={asker:s("Each person pays for their own questions, and is asked first."),owner:s("You pay for all answers, without being asked, as long as you own the chat."),pool:s("The pool pays for all answers while it lasts."),sponsor:s("An agent's owner pays for its answers if they sponsor it, within their budget. You pay for other agents.")},Pt=class extends E{static properties={_chat:{state:!0},_pool:{state:!0}};constructor(){super(),this._chat=null,this._pool=null,this._filling=null}async open(t){this._chat=t,this._pool=null,await this._show(),this.querySelector("form").reset(),this.querySelector("input:checked")?.focus(),await this._attempt(async()=>{this._pool=await f.get(this._path)})}get _path(){return`/chats/${encodeURIComponent(this._chat?.id??"")}/pool`}render(){let t=this._chat;return t?a`<dialog class="dialog" aria-labelledby="payer-title" data-testid="payer-dialog">
      <form class="dialog-form" @submit=${e=>this._save(e)}>
        ${this._head("payer-title",s("Who pays"))}
        <div class="dialog-body">
          <fieldset class="payers">
            <legend class="visually-hidden">${s("Who pays for answers in this chat")}</legend>
            ${Object.keys(B).map(e=>this._choice(e,t))}
          </fieldset>
          <h3>${s("The pool")}</h3>
          <p class="pool-has" aria-live="polite" data-testid="pool">
            ${this._pool?ti(this._pool):"…"}
          </p>
          <label for="pool-amount">${s("Add from your balance (USD)")}</label>
          <div class="pool-fill">
            <input
              class="field"
              id="pool-amount"
              inputmode="decimal"
              autocomplete="off"
              maxlength="20"
              placeholder=${K("5")}
              data-testid="pool-amount"
            />
            <button
              type="button"
              class="button"
              data-testid="pool-fill"
              ?disabled=${this._isBusy}
              @click=${()=>this._fill()}
            >
              ${s("Add")}
            </button>
          </div>
        </div>
        <footer>
          ${this._problem()}<button type="button" class="button" @click=${()=>this._close()}>
            ${s("Close")}
          </button>
          <button type="submit" class="button button-primary">${s("Save")}</button>
        </footer>
      </form>
    </dialog>`:a`<dialog class="dialog"></dialog>`}_choice(t,e){return a`<label class="picker-option"
      ><span class="picker-text"><b>${B[t]}</b><small>${Zs[t]}</small></span>
      <input type="radio" name="payer" value=${t} ?checked=${t===e.payer}
    /></label>`}_fill(){if(this._isBusy)return;let t=this.querySelector("#pool-amount"),e=H(t.value),i=this._filling?.amount===e?this._filling:{amount:e,key:ie()};this._filling=i,this._attempt(async()=>{let o=await f.post(this._path,{amount:e},{"Idempotency-Key":i.key});this._filling=null,t.value="",this._pool=o,b(d(s("The pool now has %(amount)s."),{amount:Y(o.available,o.currency)})),Se.refresh()})}_save(t){t.preventDefault();let e=this._chat;if(!e)return;let i=new FormData(t.target).get("payer");this._attempt(async()=>{await f.send("PATCH",`/chats/${encodeURIComponent(e.id)}`,{payer:i}),await p.reload(e.id),this._close()})}};customElements.define("payer-dialog",Pt);function ti({available:r,held:t,currency:e}){let i=Y(r,e);return t==="0"?d(s("Pool: %(amount)s"),{amount:i}):d(s("Pool: %(amount)s, of which %(held)s is on hold"),{amount:i,held:Y(t,e)})}var Xe=/[\s\-_.,:/(]/;function ei(r,t){let e=A(r).replace(/\s+/g,""),i=A(t);if(!e)return 1;let o=i.indexOf(A(r).trim());if(o>=0)return 1e3+(o===0||Xe.test(i[o-1])?500:0)-Math.min(i.length,400);let n=0,l=-1;for(let c of e){let m=i.indexOf(c,l+1);if(m<0)return 0;m===l+1?n+=8:m===0||Xe.test(i[m-1])?n+=6:n+=1,l=m}return n+1/(1+i.length)}function Qe(r,t,e){return t.map(i=>({choice:i,score:ei(r,e(i))})).filter(({score:i})=>i>0).toSorted((i,o)=>o.score-i.score).map(({choice:i})=>i)}var si=50,Ze={system:s("as the system"),light:s("light"),dark:s("dark")};async function ii(r){try{await I.change({theme:r}),b(d(s("Theme: %(name)s"),{name:Ze[r]}))}catch(t){if(!$(t))throw t;b(t.message)}}var Ut=r=>()=>dispatchEvent(new CustomEvent("open-settings",{detail:r})),Ft=class extends _{static properties={_typed:{state:!0},_active:{state:!0},_isOpen:{state:!0}};constructor(){super(),this._typed="",this._active=0,this._isOpen=!1,this._found=[]}connectedCallback(){super.connectedCallback(),addEventListener("keydown",t=>{(t.ctrlKey||t.metaKey)&&!t.shiftKey&&!t.altKey&&t.key.toLowerCase()==="k"&&(t.preventDefault(),this._isOpen?this._dialog.close():document.querySelector("dialog[open]")||this.open())})}async open(){this._typed="",this._active=0,this._isOpen=!0,await this.updateComplete,this._dialog.showModal(),this._input.value="",this._input.focus()}get _dialog(){return this.querySelector("dialog")}get _input(){return this.querySelector("input")}render(){return this._found=this._isOpen?Qe(this._typed,this._choices(),({name:t})=>t).slice(0,si):[],a`<dialog
      class="dialog palette"
      aria-label=${s("Commands and chats")}
      data-testid="palette"
      @close=${()=>this._closed()}
      @click=${t=>this._outside(t)}
    >
      <div class="palette-box">
        <label class="palette-field"
          >${u("search")}<input
            type="text"
            role="combobox"
            aria-label=${s("Jump to a chat or run a command")}
            placeholder=${s("Jump to a chat or run a command")}
            autocomplete="off"
            spellcheck="false"
            maxlength="100"
            aria-expanded="true"
            aria-controls="palette-list"
            aria-activedescendant=${this._found.length?`palette-${this._active}`:h}
            data-testid="palette-text"
            @input=${()=>this._written()}
            @keydown=${t=>this._key(t)}
        /></label>
        <ul
          class="palette-list"
          id="palette-list"
          role="listbox"
          aria-label=${s("Commands and chats")}
        >
          ${this._found.map((t,e)=>this._option(t,e))}
        </ul>
        ${this._found.length?h:a`<p class="palette-none" role="status">
                ${s("No results. Try a shorter search.")}
              </p>`}
      </div>
    </dialog>`}updated(){this.querySelector("[aria-selected=true]")?.scrollIntoView({block:"nearest"})}_option(t,e){return a`<li
      role="option"
      id="palette-${e}"
      aria-selected=${String(e===this._active)}
      @click=${()=>this._choose(t)}
    >
      ${t.picture}<span dir="auto">${t.name}</span><small>${t.note}</small>
    </li>`}_choices(){let t=c=>()=>this.dispatchEvent(new CustomEvent(c,{bubbles:!0})),e=c=>()=>location.assign(c),i=document.querySelector("form[action$='logout/'], form[action$=logout]"),o=!!document.querySelector("chat-view .members-button"),n=[{name:s("New chat"),note:"",picture:u("add"),run:t("new-chat")},{name:s("Search messages"),note:s("Ctrl+Shift+F"),picture:u("search"),run:t("open-search")},{name:s("Threads"),note:s("Ctrl+Shift+L"),picture:u("thread"),run:t("open-threads")},o&&{name:s("Show or hide the members"),note:"",picture:u("members"),run:t("toggle-members")},o&&{name:s("Invite, share, download"),note:"",picture:u("link"),run:()=>this.dispatchEvent(new CustomEvent("share-chat",{bubbles:!0,detail:p.get(O.state.chatId)}))},{name:s("Keyboard shortcuts"),note:"?",picture:u("code"),run:t("show-shortcuts")},...Object.entries(Ze).filter(([c])=>c!==I.values.theme).map(([c,m])=>({name:d(s("Theme: %(name)s"),{name:m}),note:"",picture:u("spark"),run:()=>ii(c)})),{name:s("Settings"),note:"",picture:u("settings"),run:Ut("")},{name:s("Notifications"),note:s("Settings"),picture:u("settings"),run:Ut("notifications")},{name:s("Profile and picture"),note:s("Settings"),picture:u("settings"),run:Ut("profile")},{name:s("Account and API keys"),note:"",picture:u("file"),run:e("/account")},{name:s("Money"),note:"",picture:u("wallet"),run:e("/money")},{name:s("Agents"),note:"",picture:u("spark"),run:e("/agents")},i!==null&&{name:s("Sign out"),note:"",picture:u("back"),run:()=>i.requestSubmit()}],l=p.list.map(c=>{let m=p.others(c),g=()=>this.dispatchEvent(new CustomEvent("open-chat",{bubbles:!0,detail:c.id}));return{name:p.nameOf(c),note:dt(c).counts?d(s("%(n)s unread"),{n:dt(c).shown}):s("Chat"),picture:fe(c,p.nameOf(c),m),run:g}});return[...n.filter(c=>c!==!1),...l]}_written(){this._typed=this._input.value,this._active=0}_key(t){if(t.isComposing||t.keyCode===229)return;let e={ArrowDown:1,ArrowUp:-1}[t.key];e&&this._found.length?(t.preventDefault(),this._active=(this._active+e+this._found.length)%this._found.length):t.key==="Enter"?(t.preventDefault(),this._found[this._active]&&this._choose(this._found[this._active])):t.key==="Escape"&&t.stopPropagation()}_choose({run:t}){this._dialog.close(),t()}_closed(){this._isOpen=!1}_outside(t){t.target===this._dialog&&this._dialog.close()}};customElements.define("command-palette",Ft);var Bt=/Mac|iPhone|iPad/.test(navigator.userAgent)?"⌘":s("Ctrl"),ts=s("Shift"),oi=[{heading:s("Anywhere"),keys:[["?",s("Show keyboard shortcuts")],[`${Bt} K`,s("Jump to a chat or run a command")],[`${Bt} ${ts} F`,s("Search messages")],[`${Bt} ${ts} L`,s("Threads you follow")],[s("Esc"),s("Close dialog, or stop your running answers")]]},{heading:s("While you write"),keys:[["Enter",s("Send")],[s("Shift Enter"),s("New line")],[s("Alt Enter"),s("Queue: send when the answer is done")],["@",s("Mention a member")],["↑",s("Edit last message (empty composer)")]]},{heading:s("In the messages"),keys:[["↑ ↓",s("Move between messages")],["M",s("Open the message menu")],["T",s("Open the thread of a message; Esc closes it")]]},{heading:s("In a call"),keys:[["M",s("Toggle mute (when not typing)")]]}],ai=r=>r instanceof HTMLElement&&(r.isContentEditable||r.matches("input, textarea, select")),Wt=class extends _{connectedCallback(){super.connectedCallback(),addEventListener("show-shortcuts",()=>this.open()),addEventListener("keydown",t=>{t.key!=="?"||t.ctrlKey||t.metaKey||t.altKey||t.isComposing||ai(t.target)||document.querySelector("dialog[open]")||(t.preventDefault(),this.open())})}open(){this._dialog.showModal()}get _dialog(){return this.querySelector("dialog")}render(){return a`<dialog class="dialog" aria-labelledby="shortcuts-title" data-testid="shortcuts">
      <div class="dialog-form">
        <header>
          <h2 id="shortcuts-title">${s("Shortcuts and commands")}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${s("Close")}
            title=${s("Close")}
            @click=${()=>this._dialog.close()}
          >
            ${u("close")}
          </button>
        </header>
        <div
          class="dialog-body shortcuts"
          tabindex="0"
          role="region"
          aria-labelledby="shortcuts-title"
        >
          ${oi.map(({heading:t,keys:e})=>a`<h3>${t}</h3>
                <dl>
                  ${e.map(([i,o])=>a`<div>
                        <dt>${i.split(" ").map(n=>a`<kbd>${n}</kbd>`)}</dt>
                        <dd>${o}</dd>
                      </div>`)}
                </dl>`)}
          <h3>${s("Commands in the message field")}</h3>
          <dl>
            ${Ne.map(({name:t,argument:e,note:i})=>a`<div>
                  <dt><kbd>/${t}${e?` ${e}`:""}</kbd></dt>
                  <dd>${i}</dd>
                </div>`)}
          </dl>
        </div>
      </div>
    </dialog>`}};customElements.define("shortcuts-dialog",Wt);var Vt="uamp.push.off",Kt="uamp.push.id",Ht=()=>"PushManager"in window&&!!navigator.serviceWorker&&Z()==="granted",Yt=()=>localStorage.getItem(Vt)==="1",ot=()=>localStorage.getItem(Kt)??"";function es(r){let t=async()=>{try{await ss(r)&&dispatchEvent(new Event("push-devices"))}catch(e){if(!$(e))throw e}};return addEventListener("notification-permission",t),t()}async function ss(r){if(!Ht()||Yt())return!1;let t=await navigator.serviceWorker.getRegistration();if(!t?.active)return!1;let{key:e}=await r.get("/me/push-key");try{let{endpoint:i,keys:o}=(await ri(t.pushManager,e)).toJSON(),{id:n}=await r.post("/me/push-subscriptions",{endpoint:i,p256dh:o?.p256dh,auth:o?.auth});return localStorage.setItem(Kt,n),!0}catch(i){if(!(i instanceof DOMException))throw i;return!1}}async function is(r){localStorage.removeItem(Vt),await ss(r)}async function os(r){return(await r.get("/me/push-subscriptions")).data}async function as(r,t){if(await r.send("DELETE",`/me/push-subscriptions/${t}`),t!==ot())return;localStorage.setItem(Vt,"1"),localStorage.removeItem(Kt),await(await(await navigator.serviceWorker?.getRegistration())?.pushManager?.getSubscription())?.unsubscribe()}async function ri(r,t){let e=await r.getSubscription();return e&&ni(e.options.applicationServerKey)===t?e:(await e?.unsubscribe(),r.subscribe({userVisibleOnly:!0,applicationServerKey:t}))}var ni=r=>btoa(String.fromCharCode(...new Uint8Array(r??new ArrayBuffer(0)))).replaceAll("+","-").replaceAll("/","_").replace(/=+$/,"");var zt=class extends E{static properties={_subject:{state:!0}};constructor(){super(),this._subject=null}async open(t){this._subject=t,await this._show()}get _chat(){return p.get(O.state.chatId)}render(){if(!this._subject)return a`<dialog class="dialog"></dialog>`;let{kind:t,name:e}=this._subject,i=this._chat?.participants.find(l=>l.kind===t&&l.name===e),o=t==="user"&&e===y.username,n=p.directWith(e,t)?.id===O.state.chatId;return a`<dialog class="dialog" aria-labelledby="profile-name" data-testid="profile-card">
      <div class="dialog-form">
        ${this._head("profile-name",t==="user"?C.nameOf(e):e)}
        <div class="dialog-body profile-card">
          <span class="profile-face">${T(e,t,i?.online)}</span>
          <div>
            <p>
              ${t==="user"?a`<bdi>@${e}</bdi> <span class="badge">${s("person")}</span>`:a`<span class="badge">${s("agent")}</span>`}
            </p>
            ${this._facts(i,o).map(l=>a`<p class="quiet" dir="auto">${l}</p>`)}
          </div>
        </div>
        <footer>
          ${this._problem()}
          ${i?a`<button type="button" class="button" @click=${()=>this._settings(i)}>
                  ${s("Settings")}
                </button>`:h}
          ${o||n?h:a`<button
                  type="button"
                  class="button button-primary"
                  data-testid="message-profile"
                  ?disabled=${this._isBusy}
                  @click=${()=>this._message(t,e)}
                >
                  ${s("Message")}
                </button>`}
        </footer>
      </div>
    </dialog>`}_facts(t,e){if(!t)return[s("No longer in this chat")];let i=t.joined_at?d(s("In this chat since %(date)s"),{date:ae(Date.parse(t.joined_at))}):"",o=t.kind==="agent"?U(t.pricing)||s("Free"):"";return[t.status_text??"",t.online||e?s("Online"):s("Offline"),o,i].filter(Boolean)}_settings(t){this._close(),this.dispatchEvent(new CustomEvent("open-member",{bubbles:!0,detail:{chat:this._chat,member:t}}))}_message(t,e){return this._attempt(async()=>{let i=await p.message(e,t);this._close(),this.dispatchEvent(new CustomEvent("open-chat",{bubbles:!0,detail:i.id}))})}};customElements.define("profile-card",zt);var Gt=class extends _{static properties={_devices:{state:!0},_error:{state:!0}};constructor(){super(),this._devices=[],this._error="",this._onAnswer=()=>this._do(async()=>{})}connectedCallback(){super.connectedCallback(),addEventListener("push-devices",this._onAnswer),this._do(async()=>{})}disconnectedCallback(){super.disconnectedCallback(),removeEventListener("push-devices",this._onAnswer)}render(){let t=Ht()&&(Yt()||!this._devices.some(({id:e})=>e===ot()));return this._devices.length===0&&!t&&!this._error?h:a`<section
      class="setting-choice"
      aria-labelledby="push-devices-title"
      data-testid="push-devices"
    >
      <h3 id="push-devices-title">${s("When no chat is open")}</h3>
      <p class="quiet">${s("These browsers get notifications until you sign out there.")}</p>
      ${this._error?a`<p class="dialog-error" role="alert">${this._error}</p>`:h}
      <ul class="setting-links">
        ${this._devices.map(e=>a`<li>
              <span>${this._name(e)}</span>
              <button
                type="button"
                class="button button-quiet"
                aria-label=${d(s("Remove %(device)s"),{device:this._name(e)})}
                @click=${()=>this._remove(e)}
              >
                ${s("Remove")}
              </button>
            </li>`)}
      </ul>
      ${t?a`<button type="button" class="button" @click=${()=>this._do(()=>is(f))}>
              ${s("Turn on for this browser")}
            </button>`:h}
    </section>`}_name({id:t,device:e}){return t===ot()?d(s("%(device)s (this browser)"),{device:e}):e}async _remove(t){await this._do(()=>as(f,t.id)),b(d(s("%(device)s gets no more notifications."),{device:t.device}))}async _do(t){this._error="";try{await t(),this._devices=await os(f)}catch(e){if(!$(e))throw e;this._error=e.message}}};customElements.define("push-devices",Gt);var rs=()=>a`<p>${d(s("You are signed in as %(name)s."),{name:y.username})}</p>
    <ul class="setting-links">
      <li><a class="button" href="/account/password">${s("Change password")}</a></li>
      <li>
        <a class="button" href="/account#devices-title">${s("Sign out everywhere else")}</a>
      </li>
      <li><a class="button" href="/account#keys-title">${s("API keys")}</a></li>
      <li><a class="button" href="/money">${s("Money")}</a></li>
      ${P.may_connect_model?a`<li>
              <a class="button" href="/connect-model">${s("Connect a model")}</a>
            </li>`:h}
    </ul>`;function ns(){let r=document.documentElement.lang;return a`<form
    class="setting-choice"
    method="post"
    action="/language"
    aria-labelledby="setting-language"
  >
    <h3 id="setting-language">${s("Language")}</h3>
    <input type="hidden" name="csrfmiddlewaretoken" .value=${f.csrfToken()} /><input
      type="hidden"
      name="next"
      .value=${location.pathname}
    />
    <div class="setting-links">
      ${P.languages.map(([t,e])=>a`<button
            class="button"
            name="language"
            value=${t}
            lang=${t}
            aria-current=${t===r?"true":h}
          >
            ${e}
          </button>`)}
    </div>
  </form>`}var Jt=class extends _{static properties={_profile:{state:!0},_error:{state:!0},_busy:{state:!0}};constructor(){super(),this._profile={...C.profile(y.username)},this._error="",this._busy=!1}render(){let{_profile:t}=this;return a`<form
      class="profile-form"
      @submit=${e=>this._save(e)}
    >
      <div class="profile-head">
        <span class="profile-face">${G(y.username,t)}</span>
        <div class="profile-picture">
          <button
            type="button"
            class="button"
            ?disabled=${this._busy}
            @click=${()=>this.querySelector("input[type=file]").click()}
          >
            ${t.avatar_url?s("Change picture"):s("Upload a picture")}
          </button>
          <input
            type="file"
            accept="image/png,image/jpeg,image/webp,image/gif"
            hidden
            tabindex="-1"
            data-testid="picture-input"
            @change=${e=>this._upload(e)}
          />
          ${t.avatar_url?a`<button
                  type="button"
                  class="button button-quiet"
                  ?disabled=${this._busy}
                  @click=${()=>this._removePicture()}
                >
                  ${s("Remove picture")}
                </button>`:h}
          <p class="quiet">
            ${s("Cropped to a square. Visible to everyone on this server.")}
          </p>
        </div>
      </div>
      <label for="profile-name">${s("Display name")}</label>
      <input
        class="field"
        id="profile-name"
        name="display_name"
        maxlength="160"
        autocomplete="nickname"
        dir="auto"
        placeholder=${y.username}
        .value=${t.display_name??""}
        aria-describedby="profile-name-note"
        aria-invalid=${this._error?"true":h}
        @input=${e=>this._edit("display_name",e.target.value)}
      />
      <p class="quiet" id="profile-name-note">
        ${d(s("Others mention you as @%(name)s."),{name:y.username})}
      </p>
      <label for="profile-status">${s("Status")}</label>
      <input
        class="field"
        id="profile-status"
        name="status_text"
        maxlength="400"
        autocomplete="off"
        dir="auto"
        placeholder=${s("On holiday until Monday")}
        .value=${t.status_text??""}
        @input=${e=>this._edit("status_text",e.target.value)}
      />
      <label for="profile-emoji">${s("Emoji instead of initials")}</label>
      <input
        class="field"
        id="profile-emoji"
        name="avatar_emoji"
        maxlength="32"
        autocomplete="off"
        .value=${t.avatar_emoji??""}
        @input=${e=>this._edit("avatar_emoji",e.target.value.trim())}
      />
      ${et("avatar_colour",t.avatar_colour??"",e=>this._edit("avatar_colour",e))}
      ${this._error?a`<p class="dialog-error" role="alert">${this._error}</p>`:h}
      <div>
        <button
          type="submit"
          class="button button-primary"
          data-testid="save-profile"
          ?disabled=${this._busy}
        >
          ${s("Save profile")}
        </button>
      </div>
    </form>`}_edit(t,e){this._profile={...this._profile,[t]:e}}_save(t){t.preventDefault();let{display_name:e,status_text:i,avatar_emoji:o,avatar_colour:n}=this._profile,l={display_name:e,status_text:i,avatar_emoji:o,avatar_colour:n};return this._do(()=>f.send("PATCH","/me",l),s("Profile saved."),!0)}_upload(t){let e=t.target,[i]=e.files??[];if(e.value="",!!i)return this._do(async()=>{let o=new FormData;return o.append("file",await st(i),"picture"),f.sendForm("PUT","/me/picture",o)},s("Picture saved."))}_removePicture(){return this._do(()=>f.send("DELETE","/me/picture"),s("Picture removed."))}async _do(t,e,i=!1){this._error="",this._busy=!0;try{let o=await t();C.learn([o]),this._profile=i?{...o}:{...this._profile,avatar_url:o.avatar_url},b(e),p.refresh()}catch(o){if(!$(o))throw o;this._error=o.message}finally{this._busy=!1}}};customElements.define("profile-form",Jt);var Xt={profile:s("Profile"),appearance:s("Appearance"),writing:s("Writing"),privacy:s("Privacy"),notifications:s("Notifications"),account:s("Account")},li={system:s("As the system"),light:s("Light"),dark:s("Dark")},ci={comfortable:s("Comfortable"),compact:s("Compact")},hi={enter:s("Enter sends, Shift+Enter starts a new line"),ctrl_enter:s("Ctrl+Enter sends, Enter starts a new line")},di={all:s("All messages"),mentions:s("Mentions and direct messages"),none:s("Nothing")},ui={unsupported:s("This browser can't show notifications here. They need an https address."),default:s("Notifications aren't enabled in this browser."),denied:s("Notifications are blocked. Allow them in your browser's settings for this site."),granted:s("Notifications are on in this browser.")},pi={quiet_from:"22:00",quiet_until:"07:00"},at=()=>Intl.DateTimeFormat().resolvedOptions().timeZone||"UTC",ls=r=>r in Xt,Qt=class extends _{static properties={_section:{state:!0},_error:{state:!0},_isOpen:{state:!0},_opened:{state:!0}};constructor(){super(),this._section="profile",this._error="",this._isOpen=!1}connectedCallback(){super.connectedCallback(),I.addEventListener("change",()=>this.requestUpdate()),addEventListener("notification-permission",()=>this.requestUpdate()),addEventListener("open-settings",t=>this.open(t.detail||"profile"))}async open(t){this._section=ls(t)?t:"profile",this._error="",this._isOpen=!0,await this.updateComplete,this._dialog.open||this._dialog.showModal(),this._focusTab()}render(){return a`<dialog
      class="dialog is-wide settings"
      aria-labelledby="person-settings-title"
      data-testid="settings-dialog"
      @close=${()=>{this._isOpen=!1}}
    >
      ${this._isOpen?a`<div class="dialog-form">
              <header>
                <h2 id="person-settings-title">${s("Settings")}</h2>
                <button
                  type="button"
                  class="icon-button"
                  aria-label=${s("Close")}
                  title=${s("Close")}
                  @click=${()=>this._dialog.close()}
                >
                  ${u("close")}
                </button>
              </header>
              <div class="settings-body">
                <div
                  class="settings-tabs"
                  role="tablist"
                  aria-label=${s("Sections")}
                  aria-orientation="vertical"
                  @keydown=${t=>this._key(t)}
                >
                  ${Object.entries(Xt).map(([t,e])=>a`<button
                        type="button"
                        class="settings-tab"
                        role="tab"
                        id="settings-tab-${t}"
                        aria-controls="settings-panel"
                        aria-selected=${String(t===this._section)}
                        tabindex=${t===this._section?0:-1}
                        @click=${()=>this._show(t)}
                      >
                        ${e}
                      </button>`)}
                </div>
                <div
                  class="settings-panel"
                  role="tabpanel"
                  id="settings-panel"
                  tabindex="0"
                  aria-labelledby="settings-tab-${this._section}"
                >
                  ${this._error?a`<p class="dialog-error" role="alert">${this._error}</p>`:h}${this._panel(this._section)}
                </div>
              </div>
            </div>`:h}
    </dialog>`}get _dialog(){return this.querySelector("dialog")}_focusTab(){this.querySelector("[role=tab][aria-selected=true]")?.focus()}_panel(t){return{profile:()=>this._profile(),appearance:()=>this._appearance(),writing:()=>this._writing(),privacy:()=>this._privacy(),notifications:()=>this._notifications(),account:rs}[t]()}_profile(){return a`<profile-form></profile-form>`}_appearance(){return a`${this._choice("theme",s("Theme"),li)}${this._choice("density",s("Density"),ci)}
    ${this._switch("follow_answers",s("Scroll along while an answer is written"),s("When off, the page stops with your question at the top."))}${ns()}`}_writing(){return this._choice("send_key",s("Send key"),hi)}_privacy(){return a` ${this._switch("read_receipts",s("Show others what I've read"),s("When off, others can't see what you've read. You still see what they have read."))}
    ${this._switch("typing_notices",s("Show when I'm typing"),"")}`}_notifications(){let{values:t}=I,e=Z(),i=t.quiet_from!=="";return a` <div class="setting-note" data-testid="notification-state">
        <p>${ui[e]}</p>
        ${e==="default"?a`<button
                type="button"
                class="button button-primary"
                @click=${()=>De()}
              >
                ${s("Allow notifications")}
              </button>`:h}
      </div>
      <push-devices></push-devices>
      ${this._choice("notifications",s("Notify me about"),di,s("You can override this in each chat's settings."))}
      ${this._switch("notification_text",s("Show who wrote and what"),s("When off, a notification only says that there is a message."))}
      ${this._switch("notification_sound",s("Sound"),"")}
      ${this._switch("mail_unread",s("Email me unread messages"),s("Mentions and direct messages that stay unread for 15 minutes, at most once an hour. Needs a confirmed email address."))}
      <label class="setting"
        ><span class="picker-text"
          ><b>${s("Quiet hours")}</b
          ><small>${s("No notifications between these times")}</small></span
        >
        <input
          type="checkbox"
          role="switch"
          name="quiet"
          .checked=${i}
          @change=${o=>this._quiet(o.target.checked)}
      /></label>
      ${i?a`<div class="quiet-hours">
              ${this._time("quiet_from",s("From"))}${this._time("quiet_until",s("Until"))}
              <p class="quiet">
                ${d(s("Times are in %(zone)s."),{zone:t.time_zone.replace("_"," ")})}
                ${t.time_zone===at()?h:a`<button
                        type="button"
                        class="link"
                        @click=${()=>this._change({time_zone:at()})}
                      >
                        ${d(s("Use %(zone)s"),{zone:at().replace("_"," ")})}
                      </button>`}
              </p>
            </div>`:h}`}_choice(t,e,i,o=""){let n=`setting-${t}`;return a`<fieldset class="setting-choice" aria-describedby=${o?`${n}-note`:h}>
      <legend>${e}</legend>
      ${o?a`<p class="quiet" id="${n}-note">${o}</p>`:h}
      ${Object.entries(i).map(([l,c])=>a`<label class="setting-option"
            ><input
              type="radio"
              name=${n}
              value=${l}
              .checked=${I.values[t]===l}
              @change=${()=>this._change({[t]:l})}
            /><span>${c}</span></label
          >`)}
    </fieldset>`}_switch(t,e,i){return a`<label class="setting"
      ><span class="picker-text"
        ><b>${e}</b>${i?a`<small>${i}</small>`:h}</span
      >
      <input
        type="checkbox"
        role="switch"
        name=${t}
        .checked=${I.values[t]}
        @change=${o=>this._change({[t]:o.target.checked})}
    /></label>`}_time(t,e){return a`<label
      >${e}<input
        type="time"
        class="field"
        name=${t}
        required
        .value=${I.values[t]}
        @change=${i=>i.target.value&&this._change({[t]:i.target.value})}
    /></label>`}_quiet(t){return this._change(t?{...pi,time_zone:I.values.time_zone||at()}:{quiet_from:"",quiet_until:""})}async _change(t){this._error="";try{await I.change(t),b(s("Saved."))}catch(e){if(!$(e))throw e;this._error=e.message}this.requestUpdate()}_show(t){ls(t)&&(this._section=t),this._error=""}_key(t){let e=Object.keys(Xt),i=e.indexOf(this._section),o={ArrowDown:i+1,ArrowRight:i+1,ArrowUp:i-1,ArrowLeft:i-1,Home:0,End:e.length-1}[t.key];o!==void 0&&(t.preventDefault(),this._show(e[(o+e.length)%e.length]),this.updateComplete.then(()=>this._focusTab()))}};customElements.define("settings-dialog",Qt);function rt(r,t){return r==="agent"?t:t===y.username?s("You"):C.nameOf(t)}var mi=30;function cs(r){let t=new Date(r),e=i=>String(i).padStart(2,"0");return`${t.getFullYear()}-${e(t.getMonth()+1)}-${e(t.getDate())}`}var us=(r=Date.now())=>({from:s("from: a person"),agent:s("agent: an agent"),before:`before:${cs(r)}`,after:`after:${cs(r-mi*864e5)}`}),hs=/(^|\s)(from|agent|in|has|before|after):(?:"([^"]+)"|([^\s"]+))(?=\s)/i;function nt(r,t=!1){let e=[],i=t?`${r} `:r;for(let o=hs.exec(i);o;o=hs.exec(i))e.push({name:o[2].toLowerCase(),value:o[3]??o[4]}),i=i.slice(0,o.index)+o[1]+i.slice(o.index+o[0].length).trimStart();return{filters:V([],e),text:t?i.trimEnd():i}}var V=(r,t)=>Array.from(new Map([...r,...t].map(e=>[e.name,e])).values());function ps(r,t){return[...r.map(({name:i,value:o})=>`${i}:${/\s/.test(o)?`"${o}"`:o}`),t.trim()].filter(Boolean).join(" ")}var ms=r=>Array.from(nt(r,!0).text.matchAll(/"([^"]+)"|(\S+)/g),([,t,e])=>A(t??e)),fi=50,ds=220;function fs(r,t){let e=_i(r,t),i=gi(e,t),o=i.map(({at:v})=>v),n=Math.max(0,Math.min(...o,e.length)-fi),l=o.length?n:0,c=e.slice(l,l+ds),m=l>0?[{text:"…",isFound:!1}]:[],g=0;for(let v of i){let[k,L]=[v.at-l,Math.min(v.end-l,c.length)];k<g||k>=L||(k>g&&m.push({text:c.slice(g,k),isFound:!1}),m.push({text:c.slice(k,L),isFound:!0}),g=L)}return g<c.length&&m.push({text:c.slice(g),isFound:!1}),l+ds<e.length&&m.push({text:"…",isFound:!1}),m}function _i(r,t){let e=ke(r),i=A(e);return t.every(o=>i.includes(o))?e:r.replace(/\s+/g," ")}function gi(r,t){let{text:e,starts:i}=le(r);return t.filter(Boolean).flatMap(n=>{let l=[];for(let c=e.indexOf(n);c>=0;c=e.indexOf(n,c+n.length))l.push({at:i[c],end:bi(i,c+n.length)});return l}).toSorted((n,l)=>n.at-l.at||l.end-n.end)}function bi(r,t){let e=r[t-1];for(;t<r.length-1&&r[t]===e;)t+=1;return r[t]}function _s({id:r,chat_id:t,name:e,sender_kind:i,content:o,content_items:n,created_at:l,thread:c,also_in_chat:m},g,v){let k=!c||m,L=p.get(t),se=n.map(({filename:D})=>D).filter(Boolean);return a`<li>
    <button
      type="button"
      class="search-result"
      data-testid="search-result"
      @click=${()=>v(t,r,k?"":c??"")}
    >
      ${T(e,i)}
      <span class="search-words"
        ><span class="search-head"
          ><b><bdi>${rt(i,e)}</bdi></b>
          <span class="search-chat"
            ><bdi>${L?p.nameOf(L):s("Another chat")}</bdi></span
          >
          <time datetime=${l} title=${j(Date.parse(l))}
            >${z(Date.parse(l))}</time
          ></span
        >
        <span class="search-text" dir="auto"
          >${fs(o,g).map(({text:D,isFound:ct})=>ct?a`<mark>${D}</mark>`:D)}</span
        >
        ${se.length?a`<span class="search-files"
                >${u("file")}<span
                  >${se.map((D,ct)=>a`${ct?", ":""}<bdi>${D}</bdi>`)}</span
                ></span
              >`:h}</span
      >
    </button>
  </li>`}var lt=(r,t,e,i)=>a`<li>
    <button type="button" class="search-name" @click=${i}>
      ${T(r,t)}<span><b>${r}</b> <small>${e}</small></span>
    </button>
  </li>`;function gs({phase:r,found:t,error:e}){return r==="failed"?e:r!=="found"||!t?"":t.has_more?d(s("%(n)s or more messages found."),{n:t.data.length}):d(M("%(n)s message found.","%(n)s messages found.",t.data.length),{n:t.data.length})}var $i=250,Zt=4,te=class extends _{static properties={_filters:{state:!0},_text:{state:!0},_state:{state:!0}};constructor(){super(),this._filters=[],this._text="",this._state={phase:"empty"},this._asked=0,this._agents=null,this._timer=0}connectedCallback(){super.connectedCallback(),addEventListener("open-search",()=>this.open()),addEventListener("keydown",t=>{!((t.ctrlKey||t.metaKey)&&t.shiftKey&&t.key.toLowerCase()==="f")||document.querySelector("dialog[open]")||(t.preventDefault(),this.open())})}async open(){await this.updateComplete,this._dialog.showModal(),this._input.select(),this._search(0)}get _dialog(){return this.querySelector("dialog")}get _input(){return this.querySelector("input")}render(){return a`<dialog
      class="dialog is-wide search"
      aria-labelledby="search-title"
      data-testid="search-dialog"
    >
      <form
        class="dialog-form"
        role="search"
        @submit=${t=>this._submit(t)}
        @keydown=${t=>this._key(t)}
      >
        <header>
          <h2 id="search-title">${s("Search")}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${s("Close")}
            title=${s("Close")}
            @click=${()=>this._close()}
          >
            ${u("close")}
          </button>
        </header>
        <div class="search-field">
          <div class="search-box">
            ${u("search")}${this._filters.map(t=>this._chip(t))}
            <input
              type="search"
              aria-label=${s("Search messages, people, agents and chats")}
              placeholder=${s("Words, from:bob, has:file")}
              maxlength="400"
              autocomplete="off"
              enterkeyhint="search"
              data-testid="search-text"
              .value=${this._text}
              @input=${()=>this._written()}
            />
          </div>
          <div class="search-offers" role="group" aria-label=${s("Filters")}>
            ${this._offers()}
          </div>
        </div>
        <div
          class="search-results"
          role="region"
          aria-label=${s("Results")}
          aria-busy=${String(this._state.phase==="searching")}
        >
          ${this._results()}
        </div>
        <p class="visually-hidden" role="status">${gs(this._state)}</p>
      </form>
    </dialog>`}_chip({name:t,value:e}){return a`<button
      type="button"
      class="search-chip"
      aria-label=${d(s("Remove the filter %(name)s: %(value)s"),{name:t,value:e})}
      data-testid="search-chip"
      @click=${()=>this._drop(t)}
    >
      <span>${t}: <b>${this._valueName(t,e)}</b></span
      >${u("close")}
    </button>`}_valueName(t,e){let i=t==="in"?p.get(e):void 0;return i?p.nameOf(i):e}_offers(){let t=us(),e=new Set(this._filters.map(({name:n})=>n)),i=(n,l)=>a`<button type="button" class="search-offer" @click=${l}>${n}</button>`,o=n=>()=>{this._text=`${this._text.trimEnd()} ${n}:`.trimStart(),this.updateComplete.then(()=>this._input.focus())};return[O.state.chatId&&!e.has("in")?i(s("In this chat"),()=>this._add("in",O.state.chatId)):h,e.has("from")?h:i(s("From me"),()=>this._add("from",y.username)),e.has("has")?h:i(s("With files"),()=>this._add("has","file")),...Object.entries(t).filter(([n])=>!e.has(n)).map(([n,l])=>i(l,o(n)))]}_results(){let{phase:t,error:e,found:i,words:o}=this._state,n=this._names();if(t==="failed")return a`${n}
        <p class="search-note" role="alert">${e}</p>`;if(t==="empty")return a`<p class="search-note">
        ${s("Search your messages. Use filters to narrow results.")}
      </p>`;if(!i)return a`${n}${q(s("Searching"))}`;let{data:l,has_more:c,searched_chats:m,chats:g}=i;return a`${n}
    ${l.length?a`<h3>${s("Messages")}</h3>
            <ul>
              ${l.map(v=>_s(v,o??[],(...k)=>this._openMessage(...k)))}
            </ul>`:a`<p class="search-note" data-testid="search-none">
            ${s("No messages found. Try fewer words, or remove a filter.")}
          </p>`}
    ${c?a`<p class="search-note">
            ${s("There are more. Narrow the search with before: and a date.")}
          </p>`:h}
    ${m<g?a`<p class="search-note">
            ${d(s("Only the %(searched)s latest of your %(chats)s chats were searched. Use in: to search another."),{searched:m,chats:g})}
          </p>`:h}`}_names(){let{people:t=[],agents:e=[],words:i=[]}=this._state,o=i.length?p.list.filter(n=>A(p.nameOf(n)).includes(i.join(" "))).slice(0,Zt):[];return!o.length&&!t.length&&!e.length?h:a`<h3>${s("Names")}</h3>
      <ul class="search-names" data-testid="search-names">
        ${o.map(n=>lt(p.nameOf(n),"user",s("Open the chat"),()=>this._openChat(n.id)))}
        ${t.map(n=>lt(n,"user",s("Messages from this person"),()=>this._add("from",n,!0)))}
        ${e.map(n=>lt(n,"agent",s("Messages from this agent"),()=>this._add("agent",n,!0)))}
      </ul>`}_written(){let{filters:t,text:e}=nt(this._input.value);this._filters=V(this._filters,t),this._text=e,this._search($i)}_submit(t){t.preventDefault();let{filters:e,text:i}=nt(this._input.value,!0);this._filters=V(this._filters,e),this._text=i,this._search(0)}_add(t,e,i=!1){this._filters=V(this._filters,[{name:t,value:e}]),i&&(this._text=""),this._input.focus(),this._search(0)}_drop(t){this._filters=this._filters.filter(e=>e.name!==t),this._input.focus(),this._search(0)}_key(t){let e=this._filters.at(-1);t.key==="Backspace"&&t.target===this._input&&!this._input.value&&e&&this._drop(e.name);let i={ArrowDown:1,ArrowUp:-1}[t.key];if(!i)return;let o=[this._input,...this.querySelectorAll(".search-results button")],n=o.indexOf(document.activeElement),l=o[n+i];!l||n===-1||(t.preventDefault(),l.focus())}_search(t){clearTimeout(this._timer),this._asked+=1;let e=ps(this._filters,this._text);e?this._timer=window.setTimeout(()=>this._ask(e),t):this._state={phase:"empty"}}async _ask(t){let e=this._asked,i=ms(this._text);this._state={...this._state,phase:"searching",words:i};let o=this._namesFor(i,e);try{let n=await f.get(`/search?limit=30&q=${encodeURIComponent(t)}`);e===this._asked&&(this._state={...this._state,phase:"found",found:n})}catch(n){if(!$(n))throw n;e===this._asked&&(this._state={...this._state,phase:"failed",error:n.message,found:void 0})}await o}async _namesFor(t,e){let i=t.length===1?t[0].replace(/^@/,""):"",o=[],n=[];if(i){this._agents||=f.get("/agents").then(c=>c.data||c);try{[o,n]=await Promise.all([f.get(`/users?q=${encodeURIComponent(i)}`).then(({data:c})=>c),this._agents])}catch(c){if(this._agents=null,!$(c))throw c}}if(e!==this._asked)return;let l=c=>A(c).startsWith(A(i));this._state={...this._state,people:o.map(({username:c})=>c).slice(0,Zt),agents:n.map(({name:c})=>c).filter(l).slice(0,Zt)}}_close(){this._dialog.close()}_openMessage(t,e,i){this._close(),this.dispatchEvent(new CustomEvent("open-message",{bubbles:!0,detail:{chatId:t,messageId:e,threadId:i}}))}_openChat(t){this._close(),this.dispatchEvent(new CustomEvent("open-chat",{bubbles:!0,detail:t}))}};customElements.define("search-dialog",te);var yi=300,ee=class extends _{static properties={_threads:{state:!0},_cursor:{state:!0},_error:{state:!0}};constructor(){super(),this._threads=null,this._cursor=null,this._error=""}connectedCallback(){super.connectedCallback(),addEventListener("open-threads",()=>this.open()),addEventListener("keydown",t=>{!((t.ctrlKey||t.metaKey)&&t.shiftKey&&t.key.toLowerCase()==="l")||document.querySelector("dialog[open]")||(t.preventDefault(),this.open())})}async open(){await this.updateComplete,this._dialog.showModal(),this._threads=null,await this._load("")}get _dialog(){return this.querySelector("dialog")}async _load(t){this._error="";try{let e=await f.get(`/threads?limit=20${t?`&cursor=${encodeURIComponent(t)}`:""}`),i=t?this._threads||[]:[];this._threads=[...i,...e.data.filter(({id:o})=>!i.some(n=>n.id===o))],this._cursor=e.next_cursor}catch(e){if(e.name!=="ApiError")throw e;this._error=e.message}}render(){return a`<dialog
      class="dialog is-wide search threads"
      aria-labelledby="threads-title"
      data-testid="threads-dialog"
    >
      <div class="dialog-form" @keydown=${t=>this._key(t)}>
        <header>
          <h2 id="threads-title">${s("Threads")}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${s("Close")}
            title=${s("Close")}
            @click=${()=>this._dialog.close()}
          >
            ${u("close")}
          </button>
        </header>
        <div
          class="search-results"
          role="region"
          aria-label=${s("Threads you follow")}
          aria-busy=${String(!this._threads&&!this._error)}
        >
          ${this._body()}
        </div>
        <p class="visually-hidden" role="status">
          ${this._threads?d(M("%(n)s thread","%(n)s threads",this._threads.length),{n:this._threads.length}):""}
        </p>
      </div>
    </dialog>`}_body(){let t=this._error?a`<p class="search-note" role="alert">
          ${this._error}
          <button
            type="button"
            class="button"
            @click=${()=>this._load(this._threads&&this._cursor||"")}
          >
            ${s("Try again")}
          </button>
        </p>`:h;return this._threads?this._threads.length?a`<ul>
        ${R(this._threads,({id:e})=>e,e=>this._item(e))}
      </ul>
      ${t}
      ${this._cursor&&!this._error?a`<button
              type="button"
              class="button"
              @click=${()=>this._load(this._cursor||"")}
            >
              ${s("Show more")}
            </button>`:h}`:a`<div class="empty" role="note" data-testid="threads-none">
        ${u("thread")}
        <h3>${s("You don't follow any threads yet")}</h3>
        <p>
          ${s("To start a thread, press T on a message or choose “Reply in thread” from its menu. Threads you start, reply to or are mentioned in appear here.")}
        </p>
      </div>`:this._error?t:q(s("Loading the threads"))}_item({id:t,chat_id:e,chat_title:i,name:o,sender_kind:n,content:l,replies:c,unread:m,last_at:g}){let v=p.get(e);return a`<li>
      <button
        type="button"
        class="search-result"
        data-testid="thread-item"
        @click=${()=>this._go(e,t)}
      >
        ${T(o,n)}
        <span class="search-words"
          ><span class="search-head"
            ><b dir="auto">${rt(n,o)}</b>
            <span class="search-chat" dir="auto"
              >${v?p.nameOf(v):i||s("Another chat")}</span
            >
            <time datetime=${g} title=${j(Date.parse(g))}
              >${z(Date.parse(g))}</time
            ></span
          >
          <span class="search-text" dir="auto"
            >${xe(l,yi)||s("A file or a deleted message")}</span
          >
          <span class="search-files"
            >${d(M("%(n)s reply","%(n)s replies",c),{n:c})}${m?a`<span class="unread is-replies" data-testid="thread-news"
                    >${d(s("%(n)s new"),{n:m})}</span
                  >`:h}</span
          ></span
        >
      </button>
    </li>`}_key(t){let e={ArrowDown:1,ArrowUp:-1}[t.key];if(!e)return;let i=Array.from(this.querySelectorAll(".search-results button")),o=i.indexOf(document.activeElement),n=i[o<0?0:o+e];n&&(t.preventDefault(),n.focus())}_go(t,e){this._dialog.close(),this.dispatchEvent(new CustomEvent("open-message",{bubbles:!0,detail:{chatId:t,messageId:"",threadId:e}}))}};customElements.define("threads-dialog",ee);S("new-chat",()=>x("new-chat-dialog").startChat());S("add-members",r=>x("new-chat-dialog").addTo(r));S("open-member",({chat:r,member:t})=>x("member-dialog").open(r,t));S("open-profile",r=>x("profile-card").open(r));S("ask-to-call",r=>x("call-dialog").open(r));S("chat-settings",r=>x("chat-settings-dialog").open(r));S("share-chat",r=>x("links-dialog").open(r));S("set-payer",r=>x("payer-dialog").open(r));S("message-menu",(r,t)=>x("message-menu").open(t,r));S("chat-menu",(r,t)=>x("chat-menu").open(t,r));S("react",(r,t)=>x("emoji-picker").open(t,r));S("pick-emoji",(r,t)=>x("emoji-picker").open(t,null,r));S("delete-message",(r,t)=>x("delete-dialog").open(t,r));S("show-revisions",(r,t)=>x("revisions-dialog").open(t,r));S("show-frames",r=>x("message-console").open(r));je(pe).then(()=>es(f));
