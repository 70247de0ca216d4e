"""Common English words, listed by hand, from which invented names and relations are composed."""

ACTIONS = """
abandon abuse accept accuse acknowledge acquire act adapt add admit adopt advise agree aid aim allow alter announce
answer apologize appeal appear appoint approve argue arm arrest arrive ask assault assemble assist attack attempt
attend award ban bargain beat become begin believe belong benefit bid blame block bomb book born borrow break bring
broadcast build burn buy call campaign cancel capture carry cast cause cede celebrate challenge change charge cite
claim clash close collaborate comment commit communicate compete complain conduct confirm confiscate congratulate
connect consider consult contain contribute control convict cooperate cost cover create criticize cross cut deal
debate decide declare decline decrease defeat defend defy delay deliver demand demobilize demonstrate denounce deny
depart deploy describe design destroy detain develop die direct disagree disapprove discuss dismiss dispatch dispute
distribute divide donate draw drop ease edit educate elect employ empower encourage end endorse engage enter escape
establish evacuate examine exchange execute expel expand explain exploit explore export express extend extradite fail
fall favor fear feed fight file fill finance find fine fire fix flee fly follow forbid force forgive form found free
fund gain gather get give grant grow guard halt hand handle hear help hide hire hold honor host hunt identify impeach
impose improve include increase influence inform inspect insult intend interview introduce invade invent invest
investigate invite issue join judge keep kidnap kill know land launch lead learn leave lend let liberate lift limit
link list listen live locate lose lower maintain make manage mark marry measure mediate meet merge mobilize monitor
move murder name need negotiate nominate object observe obtain occupy offer open operate oppose order organize
overthrow own participate pass pay perform permit persuade plan play pledge point praise predict prepare present
prevent print produce prohibit promise promote propose protect protest prove provide publish pull punish purchase
pursue push put quit raid raise rally ratify reach read rebuff receive recognize recommend reconcile record recruit
reduce refuse reject relate relax release relocate rely remain remove rent repair reply report represent request
require rescue research reside resign resist resolve respond restore restrict retire retreat return reveal review
reward ride rise rule run sail sanction save say score search see seek seize select sell send sentence separate serve
set settle share shell ship shoot show sign sing sit slow smuggle speak spend sponsor spread stage stand star start
state stay steal stop strike study submit succeed sue supply support surrender survive suspend sustain take talk teach
tell test thank threaten torture trade train transfer translate travel treat trust try turn use verify veto violate
visit voice vote wait walk want warn watch wear win wish withdraw won work worship wound write yield accused acquired
affiliated appointed associated assigned attended awarded based borders contained controlled created directed done
edited employed featured formed founded given held hired influenced invaded involved joined killed known leads located
made married met named nominated occupied owned paid played produced published raised ranked received related released
represented spoken taken taught tried used written
"""

ORDINARY = """
a about above across after again against age agenda agent agreement air all ally alone along already also always among
an and animal anniversary another any apart area arm art article as asset at athlete author authority away back bad
ball band bank base battle bay bed before behind being bell below beside best better between big bill bird birth black
blood blue board boat body bomb bone border both bottle bottom box boy bread bridge bright brother brown building
business but by cabinet camp candidate capital captain car card care case castle cat cause ceasefire cell center
central century ceremony chain chair champion chance chapter character charge chart chicken chief child children
circle citizen city civil claim class classic clean clear clock cloth cloud club coach coal coast coffee coin cold
color comedy common company condition conflict consumer contact content contest contract copper corn corner cost
cotton count country couple course court cover cow crew crime crisis crop crowd crown culture cup currency custom
daily damage dance danger dark data date daughter day dead deal death debt deep degree demand desert detail dialogue
dinner direction disease district division doctor dog dollar door double down drama dream dress drink drug dry dust
each ear early earth east eastern easy economic edge editor education effort egg eight election electric eleven else
emergency empire empty energy engine enemy entire entity episode equal era event evening every evidence evil exercise
eye face fact factor faith fall false family famous fan far farm fashion fast father feature federal female few
fiction field figure film final fire first fish five flag flight floor flow flower food foot football for force
foreign forest former forward four frame fresh friend friendly from front fruit fuel full future game garden gas gate
gender general genre gift girl glass goal god gold good grade grain grand grass gray great green ground group guest
guide guilty gulf gun hair half hall hand happy harbor hard head health heart heat heavy height here hero high hill
him his history home honest hope horse hospital hot hotel hour house how human humanitarian hundred husband ice idea
if illness image in income independent index infant information inside instance instead institution instrument intent
interest international into iron is island issue it item its jazz jewel job joint journey juice junior just justice
key kind king kingdom kitchen knife knowledge labor lady lake lane language large last late law leader leaf league
left leg legal less letter level liberty library life light like line lion liquid little local location long loss lost
loud love low luck lunch lung machine magic mail main major male man many map market mass master match material matter
maximum may meal mean meat medal media medical medicine medium member memory men message metal middle mile military
milk million mind mine minor minute mirror mission mixed model modern moment money monkey month moon moral more
morning most mother motion mountain mouth movie much music musical my myth nation national nature near neck neighbor
nerve network never new news next nice night nine no noble noise non none noon normal north northern nose not note
nothing novel now nuclear number nurse ocean odd of off officer official oil old on once one only opera opinion or
orange other our out outcome outside over oxygen page pain paint pair palace paper parent part partner party past path
peace pen people percent period person personal phone photo physical piano picture pig pilot pink pipe place plain
plane planet plant plate player plot pocket poem point poison police policy political poor pop popular population port
position positive post pound power practice present press price pride priest prime prince princess prison private
prize problem process product profession profile program project property public pupil purple purpose quality quarter
queen question quick quiet race radio rail rain rare rate raw reason rebel recipe record red refugee region relation
relief religion reply rest result rhythm rice rich right ring risk river road rock role roof room root rope rose round
route royal rubber rule safe sale salt same sand scale scene school science scientist sea season seat second secret
security self senior sense separate series service seven sex shadow shape sharp sheep shell shirt shoe shop short show
sibling side sign silent silver similar simple single sister site six size skill skin sky sleep slow small smart smoke
smooth snow so social soft soil soldier solid some son song soon sort soul sound soup source south southern space
special speech speed spirit sport spot spouse spring square staff stage standard star statement station steel step
still stone storm story straight strange stream street strong student style subject sudden sugar suit summer sun
supreme sure surface sweet system table tail tale talent talk tall tank target task tax tea teacher team technical
television ten term terror test text than that the theater their them then theory there they thick thin thing third
this those thousand three through thunder ticket tiger time tin tiny title to today together tonight too tool tooth
top total touch tough tour towards tower town toy track tradition traffic tragedy train treaty tree trial tribe trip
troop trouble truck true truth twelve twenty two type under union unit until up upon upper us valley value vegetable
vehicle very via victory video view village violence violin virus vision vital voice volume vowel wage wall war warm
wash waste water wave way weak wealth weapon weather web wedding week weight welcome well west western wet what wheel
when where which while white who whole why wide wife wild will wind window wine wing winter wire wise with without
wolf woman women wonder wood word world worth wrong year yellow yes yet you young your zero zone administrative
optimistic pessimistic conventional unconventional diplomatic judicial aggression assistance cooperation rights visit
leadership operations tensions talks regime charges nationality languages organization membership release
"""

INSTITUTIONS = """
Academy Administration Affairs Agency Agriculture Airline Airport Alliance Ambassador Archives Arena Armed Army
Assembly Association Attorney Authority Ballet Bank Bishop Board Brigade Bureau Cabinet Cardinal Cathedral Center
Chamber Chancellor Church Cinema Citizen Coalition College Command Commander Commerce Commission Commissioner
Committee Communist Company Confederation Conference Congress Conservative Consortium Constitutional Corporation
Council Court Criminal Defense Democratic Department Deputy Development Diplomat Director Education Election Embassy
Employee Energy Envoy Executive Exchange Farmer Federation Festival Finance Fishermen Force Forces Foundation Front
Fund Gallery General Governor Government Guard Guild Health Heritage Hospital Immigrants Independence Industries
Industry Infantry Institute Intelligence Interior International Journalist Judge Judiciary Junta Justice Labor
Laboratory Lawyer Lawmaker League Legislature Liberal Liberation Library Magazine Major Mayor Media Member Militant
Militia Minister Ministry Mosque Movement Museum Mutual Navy Network News Newspaper Nobel Observatory Office
Opposition Orchestra Order Organization Parliament Parties Party Patrol Petroleum Police Political Populace Premier
Presidency President Press Prime Professor Progressive Prosecutor Protester Province Railway Rebel Red Refugees
Regiment Regional Religion Representatives Republic Republican Reserve Resistance Revolutionary School Secretariat
Secretary Sector Senate Senator Separatist Services Sheriff Socialist Society Soviet Spokesperson Squad State Station
Stock Studio Studios Supreme Synagogue Taskforce Telecom Temple Theatre Trade Tribunal Troops Trust Unidentified Union
United University Vice Villager Voter Welfare Worker Workers Youth Actor Actress Artist Athlete Author Band Composer
Critic Dancer Designer Drummer Economist Engineer Guitarist Historian Musician Novelist Painter Philosopher Physicist
Pianist Poet Producer Rapper Screenwriter Singer Songwriter Album Best Award Awards Book Championship Cup Drama
Episode Film Games Golden Grammy Olympics Outstanding Picture Prize Series Song Supporting Television Tony Trophy
World Accused Former Islamic Combatant Detainee Terrorist Gunman Business Men Women Children Person Human Rights
Activist
"""

PLACES = """
Africa Alaska Albania Alps America American Arab Arabia Argentina Asia Athens Atlanta Atlantic Australia Austria
Avenue Baltic Bangladesh Bay Beach Beijing Belgium Berlin Bolivia Boston Brazil Britain British Brussels Bulgaria
California Cambodia Cambridge Canada Cape Caribbean Carolina Chicago Chile China Chinese City Coast Colombia Congo
County Croatia Cuba Cyprus Dakota Dallas Delhi Denmark Detroit District Dublin Dutch East Ecuador Egypt England
English Ethiopia Europe European Finland Florida France French Georgia German Germany Ghana Greece Greek Guinea Gulf
Haiti Harbor Hawaii Heights Hill Hills Holland Houston Hungary Iceland Illinois India Indian Indiana Indonesia Iran
Iraq Ireland Irish Island Islands Israel Italian Italy Jamaica Japan Japanese Jersey Jerusalem Jordan Kansas Kenya
Kingdom Korea Korean Kuwait Lake Lebanon Liberia Libya Lisbon Liverpool London Los Angeles Madrid Malaysia Mali Malta
Manchester Massachusetts Mediterranean Mexico Miami Michigan Milan Minnesota Mississippi Missouri Mongolia Montreal
Morocco Moscow Mount Mountain Mountains Munich Myanmar Nepal Netherlands Nevada New Nigeria North Northern Norway
Ocean Ohio Oman Ontario Orleans Oxford Pacific Pakistan Palestinian Panama Paraguay Paris Park Pennsylvania Persian
Peru Philadelphia Philippines Poland Polish Port Portugal Prague Princeton Province Qatar River Roman Romania Rome
Russia Russian Saint San Santa Saudi Scotland Seattle Serbia Singapore Slovakia Slovenia Somalia South Southern Spain
Spanish Springs Sudan Sweden Swedish Switzerland Sydney Syria Taiwan Tanzania Tennessee Texas Thailand Tibet Tokyo
Toronto Town Tunisia Turkey Turkish Uganda Ukraine Uruguay Valley Vatican Venezuela Vienna Vietnam Village Virginia
Wales Washington West Western Wisconsin Yemen York Zealand Zimbabwe
"""

GIVEN = """
Aaron Abdul Adam Ahmed Alan Albert Alex Ali Alice Amy Andrea Andrew Angela Ann Anna Anthony Antonio Arthur Barbara Ben
Bernard Bill Bob Brian Bruce Carl Carlos Carol Charles Chris Christian Christopher Claire Claude Dan Daniel David
Dennis Diana Donald Douglas Edward Elena Elizabeth Emma Eric Eva Francis Frank Fred Gary George Gerald Gordon Grace
Greg Hans Harold Harry Helen Henry Howard Hugh Ian Ibrahim Ivan Jack Jacob James Jane Jason Jean Jeff Jennifer Jim
Joan Joe Johan John Jonathan Jose Joseph Juan Julia Karl Kate Keith Ken Kevin Kim Larry Laura Lee Leo Lewis Linda Lisa
Louis Lucy Luis Luke Maria Marie Mark Martin Mary Matthew Max Michael Mike Mohammad Muhammad Nancy Neil Nicholas Nina
Oliver Oscar Pablo Patricia Patrick Paul Pedro Peter Philip Rachel Ralph Raymond Rebecca Richard Rita Robert Roger
Ronald Rose Roy Russell Ruth Ryan Sam Samuel Sandra Sarah Scott Sergei Simon Sofia Stanley Stephen Steve Steven Stuart
Susan Terry Theodore Thomas Tim Tom Tony Victor Vincent Vladimir Walter Wayne William Wolfgang Yusuf
"""
